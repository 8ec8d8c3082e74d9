// Package measure starts the programs of a benchmark and reads their figures.
package measure

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Begin reads the flags of a benchmark, whose name begins each line of its log.
func Begin(name string) {
	flag.Parse()
	log.SetFlags(0)
	log.SetPrefix(name + ": ")
}

// Check ends the benchmark if there is an error.
func Check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Command is a program on one core, if pinned and there is more than one, that dies with this
// process. Its stderr goes to a file.
func Command(pinned bool, core int, stderr, name string, args ...string) (*exec.Cmd, error) {
	if pinned && runtime.NumCPU() > 1 {
		if taskset, err := exec.LookPath("taskset"); err == nil {
			args = append([]string{"-c", fmt.Sprint(core), name}, args...)
			name = taskset
		}
	}
	cmd := exec.Command(name, args...)
	file, err := os.Create(stderr)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = file
	// The signal belongs to the thread that starts the program.
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// Tail is the end of a file, "" if it cannot be read.
func Tail(file string) string {
	text, _ := os.ReadFile(file)
	if len(text) > 2000 {
		text = text[len(text)-2000:]
	}
	return string(text)
}

// Samples calls f with each sample of a page of metrics, with its labels in the name, and returns the
// size of the page.
func Samples(page io.Reader, f func(name string, value float64)) (size int, err error) {
	lines := bufio.NewScanner(page)
	for lines.Scan() {
		line := lines.Text()
		size += len(line) + 1
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			value, err := strconv.ParseFloat(line[i+1:], 64)
			if err != nil {
				return size, err
			}
			f(line[:i], value)
		}
	}
	return size, lines.Err()
}
