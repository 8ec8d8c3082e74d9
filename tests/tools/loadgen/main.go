// Command loadgen is a Go program with something to profile: it burns CPU, allocates, blocks and
// contends for locks in functions with distinctive names, and serves net/http/pprof.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:6060", "address to serve /debug/pprof on")
	busy := flag.Float64("busy", 0.1, "share of one core to burn")
	parked := flag.Int("goroutines", 20, "goroutines that wait in waitForever")
	rate := flag.Int("memprofilerate", 4096, "bytes between two allocations that are recorded")
	countsFile := flag.String("counts", "", "file to append to what was counted at each profile")
	flag.Parse()

	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	// Small allocations must show in the heap profile soon.
	runtime.MemProfileRate = *rate

	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	for i := 0; i < *parked; i++ {
		go waitForever()
	}
	go burnCPU(*busy)
	go allocateALot()
	var lock sync.Mutex
	go contendOnMutex(&lock)
	go contendOnMutex(&lock)
	go blockOnChannel()

	var handler http.Handler = http.DefaultServeMux
	if *countsFile != "" {
		handler = counting(*countsFile, handler)
		// Only the collections that are asked for (?gc=1): one that begins by itself at that moment
		// lets the heap profile lag the counts.
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(512 << 20)
	}
	go func() { log.Fatal(http.Serve(ln, handler)) }()
	fmt.Printf("listening on %s\n", ln.Addr())

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
}

func waitForever() {
	select {}
}

//go:noinline
func burnCPU(share float64) {
	const slice = 50 * time.Millisecond
	work := time.Duration(float64(slice) * share)
	sum := [32]byte{}
	for {
		for start := time.Now(); time.Since(start) < work; {
			for i := 0; i < 200; i++ {
				sum = sha256.Sum256(sum[:])
			}
		}
		time.Sleep(slice - work)
	}
}

var kept [64][]byte

//go:noinline
func allocateALot() {
	for i := 0; ; i++ {
		kept[i%len(kept)] = make([]byte, 16<<10)
		time.Sleep(2 * time.Millisecond)
	}
}

//go:noinline
func contendOnMutex(lock *sync.Mutex) {
	for {
		lock.Lock()
		time.Sleep(time.Millisecond)
		lock.Unlock()
	}
}

//go:noinline
func blockOnChannel() {
	c := make(chan int)
	go func() {
		for {
			time.Sleep(5 * time.Millisecond)
			c <- 1
		}
	}()
	for range c {
	}
}
