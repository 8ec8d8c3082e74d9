// Command rollout is a service of which two versions are built: it does the same work again and
// again, in functions with distinctive names, and serves net/http/pprof. One function, price, is
// slower in a build with -ldflags "-X main.priceSteps=80000".
package main

import (
	"flag"
	"log"
	"math/rand"
	"net/http"
	_ "net/http/pprof"
	"os"
	"strconv"
	"time"
)

// priceSteps is how much work price does; each of the others does steps.
var priceSteps = "20000"

const (
	steps = 20000
	// The numbers of Knuth's MMIX generator.
	factor = 6364136223846793005
	addend = 1442695040888963407
)

// Each function has a loop of its own, since the time of a function that it calls, inlined or not,
// would not be its own.

//go:noinline
func parse(x uint64) uint64 {
	for i := 0; i < steps; i++ {
		x = x*factor + addend
	}
	return x
}

//go:noinline
func authorize(x uint64) uint64 {
	for i := 0; i < steps; i++ {
		x = x*factor + addend
	}
	return x
}

//go:noinline
func price(x uint64, n int) uint64 {
	for i := 0; i < n; i++ {
		x = x*factor + addend
	}
	return x
}

//go:noinline
func render(x uint64) uint64 {
	for i := 0; i < steps; i++ {
		x = x*factor + addend
	}
	return x
}

//go:noinline
func encode(x uint64) uint64 {
	for i := 0; i < steps; i++ {
		x = x*factor + addend
	}
	return x
}

//go:noinline
func audit(x uint64) uint64 {
	for i := 0; i < steps; i++ {
		x = x*factor + addend
	}
	return x
}

//go:noinline
func serve(x uint64, n int) uint64 {
	return audit(encode(render(price(authorize(parse(x)), n))))
}

func main() {
	listen := flag.String("listen", "127.0.0.1:6061", "address to serve /debug/pprof on")
	flag.Parse()
	n, err := strconv.Atoi(priceSteps)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/quit", func(http.ResponseWriter, *http.Request) { os.Exit(0) })
	go func() { log.Fatal(http.ListenAndServe(*listen, nil)) }()
	x := uint64(1)
	for {
		// A busy system starts and interrupts programs at its clock ticks, when samples are taken as
		// well: in work of always the same length, some functions would have most of the samples.
		for i := 5 + rand.Intn(20); i > 0; i-- {
			x = serve(x, n)
		}
		time.Sleep(time.Duration(4+rand.Intn(12)) * time.Millisecond)
	}
}
