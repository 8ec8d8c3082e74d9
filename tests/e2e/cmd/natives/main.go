// Command natives plays native programs and a server for their profiles, for scripts/bench-names.sh.
//
//	natives -dir DIR -targets 300 -sink 127.0.0.1:4040
//
// Each target has an address of its own and answers at once: /pprof/profile with DIR/cpu.prof, and the symbol service of
// this profile with DIR/names.txt, a line for each address; /debug/pprof/native and /debug/pprof/few with DIR/native.pb.gz and
// DIR/few.pb.gz, without a service.
// It prints the addresses of the targets as a file for file_sd_configs, and then serves until it is killed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/pyroscope"
)

func main() {
	dir := flag.String("dir", ".", "where the profiles and names are")
	n := flag.Int("targets", 300, "targets")
	sink := flag.String("sink", "127.0.0.1:4040", "address of the server for profiles, which only counts")
	measure.Begin("natives")
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(*dir, name))
		measure.Check(err)
		return text
	}
	mux := http.NewServeMux()
	serve := func(path, name string) {
		body := read(name)
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	}
	serve("/pprof/profile", "cpu.prof")
	serve("/debug/pprof/native", "native.pb.gz")
	serve("/debug/pprof/few", "few.pb.gz")
	mux.Handle("/pprof/symbol", service(string(read("names.txt"))))
	_, err := pyroscope.Start(pyroscope.Options{Addr: *sink, Cheap: true})
	measure.Check(err)
	// 127.0.0.0/8 as a whole has no name but this one.
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	measure.Check(err)
	var addresses []string
	for i := 0; i < *n; i++ {
		addresses = append(addresses, fmt.Sprintf("127.210.%d.%d:%d", i/250, i%250+1, listener.Addr().(*net.TCPAddr).Port))
	}
	line, err := json.Marshal([]map[string][]string{{"targets": addresses}})
	measure.Check(err)
	fmt.Println(string(line))
	measure.Check((&http.Server{Handler: mux}).Serve(listener))
}

// service answers with the lines of the addresses that are asked for.
func service(names string) http.Handler {
	lines := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(names), "\n") {
		address, _, _ := strings.Cut(line, "\t")
		lines[address] = line
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, "num_symbols: %d\n", len(lines))
			return
		}
		body, _ := io.ReadAll(r.Body)
		for _, address := range strings.Split(string(body), "+") {
			if line, ok := lines[address]; ok {
				fmt.Fprintln(w, line)
			}
		}
	})
}
