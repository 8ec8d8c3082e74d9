package e2e

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
)

// needTools skips a test whose tools are not installed; how says how to install them.
func needTools(t *testing.T, how string, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing: %s", tool, how)
		}
	}
}

// functionNames is the demangled name of each function of a profile, by the linker's name.
func functionNames(t *testing.T, gz []byte) map[string]string {
	t.Helper()
	raw, err := inflate(gz)
	must(t, err)
	var texts []string
	var functions [][2]uint64
	each(raw, func(field int, _ uint64, m []byte) {
		if field == 6 {
			texts = append(texts, string(m))
		} else if field == 5 {
			v := map[int]uint64{}
			each(m, func(f int, n uint64, _ []byte) { v[f] = n })
			functions = append(functions, [2]uint64{v[3], v[2]})
		}
	})
	names := map[string]string{}
	for _, f := range functions {
		names[texts[f[0]]] = texts[f[1]]
	}
	return names
}

// ---- Rust -------------------------------------------------------------------------------------

const rustSource = `
mod shop {
    #[inline(always)]
    fn twice(n: u32) -> u32 { n.rotate_left(3).wrapping_mul(2) }
    pub struct Cart<T> { pub items: Vec<T> }
    impl<T: Copy + Into<u64>> Cart<T> {
        #[inline(never)]
        pub fn add(&mut self, item: T) -> u64 {
            self.items.push(item);
            u64::from(twice(self.items.len() as u32)) + item.into()
        }
    }
    pub trait Price { fn price(&self) -> u64; }
    impl Price for Cart<u32> {
        #[inline(never)]
        fn price(&self) -> u64 {
            self.items.iter().map(|i| u64::from(twice(*i))).filter(|n| n % 3 != 0).sum()
        }
    }
}
fn main() {
    use shop::Price;
    let mut cart = shop::Cart { items: Vec::new() };
    let sum: u64 = std::env::args().enumerate().map(|(i, a)| cart.add((i + a.len()) as u32)).sum();
    std::process::exit((sum + cart.price() == 0) as i32);
}
`

// buildRust builds the program with further options of rustc.
func buildRust(t *testing.T, options ...string) *nativeProgram {
	t.Helper()
	needTools(t, "scripts/deps.sh native", "rustc")
	needTools(t, "scripts/deps.sh test", "gcc", "objcopy", "eu-addr2line", "addr2line")
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "app.rs"), []byte(rustSource), 0o600))
	picks := func(symbol string) bool {
		return strings.Contains(symbol, "3app4main") || strings.Contains(symbol, "shop")
	}
	// eu-addr2line finds lines by the list of addresses, which rustc leaves out unless it is asked for it.
	options = append([]string{"-O", "-g", "-C", "llvm-args=-generate-arange-section", "-C", "link-arg=-Wl,--build-id",
		"-o", "app.full", "app.rs"}, options...)
	return buildProgram(t, dir, picks, "rustc", options...)
}

// A program in Rust gets its names, inlined functions, files and lines from a directory. They agree with
// eu-addr2line; the names of both of Rust's manglings are readable, without hashes.
func TestSymbolDirectoryOfRust(t *testing.T) {
	t.Parallel()
	bin(t)
	const price = "<app::shop::Cart<u32> as app::shop::Price>::price"
	for name, options := range map[string][]string{"default": nil, "v0": {"-C", "symbol-mangling-version=v0"}} {
		name, options := name, options
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			native := buildRust(t, options...)
			server := newPyroscope(t, pyroscope.Options{})
			p := run(t, debugConfig(native.serve(t), server.URL(), "{directories: ["+native.buildIDs(t)+"]}"))
			got := waitProfiles(t, server, 1, named("process_cpu", price, "twice"))[0]
			native.checkEither(t, frames(t, got.Raw))
			names := functionNames(t, got.Raw)
			// Only v0 has the arguments of types. The standard library may be mangled in another way.
			add, mangled := "<app::shop::Cart<u32>>::add", "_R"
			for system := range names {
				if strings.HasPrefix(system, "_ZN3app4main") {
					add, mangled = "app::shop::Cart<T>::add", "_ZN"
				}
			}
			for _, want := range []string{"app::main", "app::shop::twice", add, price} {
				found := false
				for system, function := range names {
					found = found || function == want && strings.HasPrefix(system, mangled)
				}
				expect(t, found, "no function %s: %v", want, names)
			}
			p.stop()
		})
	}
}

// ---- Go with cgo ------------------------------------------------------------------------------

const cgoSource = `
package main

/*
static inline __attribute__((always_inline)) int twice(volatile int *x) { *x += 1; return *x * 2; }
__attribute__((noinline)) int shop_add(int n) {
	volatile int m = n;
	int sum = 0;
	for (int i = 0; i < n; i++) sum += twice(&m);
	return sum;
}
*/
import "C"

import (
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"os"
)

type cart[T any] struct{ items []T }

//go:noinline
func (c *cart[T]) add(item T) int {
	c.items = append(c.items, item)
	return double(len(c.items))
}

func double(n int) int { return n<<1 ^ n>>3 }

//go:noinline
func price(n int) int {
	c := cart[int]{}
	sum := 0
	for i := 0; i < n; i++ {
		sum += double(c.add(i)) + int(C.shop_add(C.int(n)))
	}
	return sum
}

func main() {
	fmt.Println(price(len(os.Args)))
	fmt.Println(http.ListenAndServe(os.Args[1], nil))
}
`

func buildCgo(t *testing.T) *nativeProgram {
	t.Helper()
	needTools(t, "scripts/deps.sh test", "gcc", "objcopy", "eu-addr2line")
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "app.go"), []byte(cgoSource), 0o600))
	picks := func(symbol string) bool { // main.main has inlined functions of other packages, which the service names
		return strings.HasPrefix(symbol, "main.") && symbol != "main.main" || symbol == "shop_add"
	}
	// Only the system's linker gives a program the build id that files with debug information go by.
	return buildProgram(t, dir, picks, "env", "CC=gcc", "CGO_ENABLED=1", "GO111MODULE=off", "GOFLAGS=", goTool(), "build", "-buildmode=exe",
		"-ldflags=-linkmode=external -extldflags=-Wl,--build-id", "-o", "app.full", "app.go")
}

// goPlaces is the file and line of each address of Go code, by Go's own tables: those of the innermost function.
func (p *nativeProgram) goPlaces(t *testing.T) map[uint64]string {
	t.Helper()
	var input strings.Builder
	for _, address := range p.addresses {
		fmt.Fprintf(&input, "%#x\n", address-p.base)
	}
	cmd := exec.Command(goTool(), "tool", "addr2line", p.full)
	cmd.Stdin = strings.NewReader(input.String())
	text, err := cmd.Output()
	must(t, err)
	lines := strings.Split(string(text), "\n")
	places := map[uint64]string{}
	for i, address := range p.addresses {
		places[address] = lines[2*i+1]
	}
	return places
}

// A program in Go with C code gets the names, inlined functions, files and lines of its C functions from a
// directory, as eu-addr2line has them. Go lists no addresses of its units, so eu-addr2line 0.188 takes its code for
// that of the C unit in front of it: it says which symbol an address is in, and Go says which line.
func TestSymbolDirectoryOfCgo(t *testing.T) {
	t.Parallel()
	bin(t)
	native := buildCgo(t)
	server := newPyroscope(t, pyroscope.Options{})
	p := run(t, debugConfig(native.serve(t), server.URL(), "{directories: ["+native.buildIDs(t)+"]}"))
	profile := waitProfiles(t, server, 1, named("process_cpu", "main.price", "shop_add", "twice"))[0]
	places := native.goPlaces(t)
	inlined := 0
	native.checkCgo(t, frames(t, profile.Raw), func(address uint64, got, want string) bool {
		all := strings.Split(got, "; ")
		outer, _, _ := strings.Cut(all[len(all)-1], " ")
		symbols := strings.Split(want, "; ") // several with eu-addr2line 0.192, which knows the units of Go
		symbol, _, _ := strings.Cut(symbols[len(symbols)-1], " ")
		_, place, _ := strings.Cut(all[0], " ")
		if strings.HasPrefix(symbol, "main._Cfunc_") { // made by cgo, in a file without a directory
			symbol, place = strings.TrimSuffix(symbol, ".abi0"), filepath.Base(place)
		}
		if len(all) > 1 {
			inlined++
			expect(t, strings.HasPrefix(got, "main.double "), "%#x: inlined %q", address, got)
		}
		return outer == symbol && place == places[address]
	})
	atLeast(t, "addresses in inlined Go functions", inlined, 1)
	p.stop()
}

// checkCgo compares the frames of C functions with those of eu-addr2line, and lets is() judge those of Go
// functions.
func (p *nativeProgram) checkCgo(t *testing.T, got map[uint64]string, is func(address uint64, got, want string) bool) {
	t.Helper()
	goes, cs := 0, 0
	for address, want := range p.wants(t) {
		if strings.Contains(want, "shop_add /") { // a C function has a place; that of Go is main._Cfunc_shop_add
			equal(t, "frames of C", got[address], want)
			cs++
		} else if strings.HasPrefix(want, "main.") {
			expect(t, is(address, got[address], want), "%#x is %q, expected %q", address, got[address], want)
			goes++
		}
	}
	atLeast(t, "addresses in C functions", cs, 5)
	atLeast(t, "addresses in Go functions", goes, 10)
}

// The symbol service of net/http/pprof gives the names of Go functions, of the inlined one if there are several.
// It does not know C functions: a directory gives these, with their lines.
func TestSymbolServiceOfCgo(t *testing.T) {
	t.Parallel()
	bin(t)
	native := buildCgo(t)
	require(t, native.base == 0, "the program is loaded elsewhere than the profile says")
	address := loop.Host() + ":6060"
	startProgram(t, exec.Command(native.full, address))
	service := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	wait(t, "the program's service", func() string {
		resp, err := http.Get("http://" + address + "/debug/pprof/symbol")
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		return unless(resp.StatusCode == http.StatusOK, "%s", resp.Status)
	})
	target, err := loop.Start("", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/debug/pprof/profile" {
			w.Write(native.profile())
		} else {
			service.ServeHTTP(w, r)
		}
	}), nil)
	must(t, err)
	t.Cleanup(target.Down)
	server := newPyroscope(t, pyroscope.Options{})
	p := run(t, debugConfig(target.Addr(), server.URL(), "{target: auto, directories: ["+native.buildIDs(t)+"]}"))
	profile := waitProfiles(t, server, 1, named("process_cpu", "main.price", "main.(*cart[...]).add", "shop_add", "twice"))[0]
	native.checkCgo(t, frames(t, profile.Raw), func(_ uint64, got, _ string) bool {
		name, place, _ := strings.Cut(got, " ")
		return place == ":0" && strings.HasPrefix(name, "main.")
	})
	atLeast(t, "names of the service", p.metrics().sum("profpull_symbols_found_total", "source", "service"), 10)
	p.stop()
}
