package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"
)

// recipe is a program that uses a file of examples/, and what its profiles name.
type recipe struct {
	name   string
	route  string // the file of examples/
	target string // the target in the configuration of docs/recipes.md
	source string // the program; its arguments are an address and a port
	file   string
	build  []string // the compiler and its arguments, or nothing
	start  []string
	types  map[string]string // a directory of the destination, and a function
}

const recipeC = `
#include <stdlib.h>
#include <string.h>
int serve_profiles(const char *address, unsigned short port);
volatile unsigned spun;
char *volatile kept[64];
__attribute__((noinline)) void burn_cpu(void) { for (unsigned i = 0; i < 1 << 20; i++) spun += i; }
__attribute__((noinline)) void keep_memory(void) { for (int i = 0; i < 64; i++) kept[i] = malloc(1 << 20); }
int main(int argc, char **argv) {
	keep_memory();
	if (argc != 3 || serve_profiles(argv[1], (unsigned short)atoi(argv[2])) != 0) return 1;
	for (;;) burn_cpu();
}
`

const recipeRust = `
mod pprof_routes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
static SPUN: AtomicU64 = AtomicU64::new(0);
static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
#[inline(never)]
fn burn_cpu() { for i in 0..1u64 << 20 { SPUN.fetch_add(i, Ordering::Relaxed); } }
#[inline(never)]
fn keep_memory() { for _ in 0..64 { KEPT.lock().unwrap().push(vec![1; 1 << 20]); } }
fn main() {
	keep_memory();
	let args: Vec<String> = std::env::args().collect();
	pprof_routes::serve(&format!("{}:{}", args[1], args[2])).unwrap();
	loop { burn_cpu(); }
}
`

const recipePython = `
import sys
import pprof_route

def burn_cpu():
    for i in range(100000):
        pass

pprof_route.serve(sys.argv[1], int(sys.argv[2]))
while True:
    burn_cpu()
`

var recipes = []recipe{
	{
		name: "C", route: "pprof_routes.c", target: "app:6063", source: recipeC, file: "app.c",
		build: []string{"cc", "-Wall", "-Wextra", "-g", "-O1", "app.c", "pprof_routes.c", "-pthread", "-lprofiler", "-ljemalloc", "-o", "app"},
		start: []string{"./app"},
		types: map[string]string{"process_cpu": "burn_cpu", "memory": "keep_memory"},
	},
	{
		name: "Rust", route: "pprof_routes.rs", target: "app:6064", source: recipeRust, file: "main.rs",
		build: []string{"rustc", "-O", "-g", "main.rs", "-o", "app"},
		start: []string{"./app"},
		types: map[string]string{"process_cpu": "burn_cpu", "memory": "keep_memory"},
	},
	{
		name: "Python", route: "pprof_route.py", target: "app:6065", source: recipePython, file: "app.py",
		start: []string{"python3", "app.py"},
		types: map[string]string{"wall": "burn_cpu"},
	},
}

// make builds the program in a directory, or skips the test if what it needs is not installed.
func (r *recipe) make(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{r.file: r.source, r.route: readText(t, "../../examples/"+r.route)} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if r.build == nil {
		if err := exec.Command(r.start[0], "--version").Run(); err != nil {
			t.Skipf("%s: %v", r.start[0], err)
		}
		return dir
	}
	if err := exec.Command(r.build[0], "--version").Run(); err != nil {
		t.Skipf("%s: %v", r.build[0], err)
	}
	for _, header := range []string{"gperftools/profiler.h", "jemalloc/jemalloc.h"} {
		if _, err := os.Stat("/usr/include/" + header); err != nil {
			t.Skip(err)
		}
	}
	cmd := exec.Command(r.build[0], r.build[1:]...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil || len(text) > 0 {
		t.Fatalf("%v: %v\n%s", r.build, err, text)
	}
	return dir
}

// config is the configuration in docs/recipes.md that has the target, for another address.
func (r *recipe) config(t *testing.T, address, destination string) string {
	t.Helper()
	for _, part := range strings.Split(readText(t, "../../docs/recipes.md"), "```") {
		if strings.HasPrefix(part, "yaml\n") && strings.Contains(part, `"`+r.target+`"`) {
			return "global: {scrape_interval: 2s}\n" + strings.Replace(strings.TrimPrefix(part, "yaml\n"), r.target, address, 1) +
				"write: [{name: files, url: \"file://" + destination + "\"}]\n"
		}
	}
	t.Fatalf("docs/recipes.md has no configuration for %s", r.target)
	return ""
}

// Programs in C, Rust and Python with the routes of examples/ are scraped with the configurations of
// docs/recipes.md: the profiles that the destination has, name the functions that ran and that
// allocated.
func TestRecipes(t *testing.T) {
	t.Parallel()
	bin(t)
	for _, r := range recipes {
		r := r
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			dir, files := r.make(t), t.TempDir()
			host := loop.Host()
			cmd := exec.Command(r.start[0], append(append([]string{}, r.start[1:]...), host, "6060")...)
			cmd.Env = append(os.Environ(), "MALLOC_CONF=prof:true", "PYTHONDONTWRITEBYTECODE=1")
			cmd.Dir = dir
			startProgram(t, cmd)
			p := run(t, r.config(t, host+":6060", files))
			for kind, function := range r.types {
				waitFunction(t, p, filepath.Join(files, "*", kind, "*.pb.gz"), function)
			}
			p.stop()
		})
	}
}

// waitFunction waits until pprof finds a function in one of the files.
func waitFunction(t *testing.T, p *program, pattern, function string) {
	t.Helper()
	read := map[string]bool{}
	p.wait(pattern+" to name "+function, func() string {
		top := "no file"
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if read[file] {
				continue
			}
			read[file] = true
			raw := readFile(t, file)
			if top = pprofTop(t, raw); strings.Contains(top, function) {
				return ""
			}
		}
		return top
	})
}
