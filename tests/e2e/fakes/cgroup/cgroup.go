// Package cgroup makes control groups with little memory and no swap, in version 2 or 1. That needs
// root and a writable /sys/fs/cgroup.
package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// Group is a control group below the topmost one.
type Group struct {
	Dir string
	v2  bool
}

var number int32

// New makes a group whose processes may have so many bytes together.
func New(limit int) (*Group, error) {
	name := fmt.Sprintf("profpull-test-%d-%d", os.Getpid(), atomic.AddInt32(&number, 1))
	g := &Group{Dir: filepath.Join("/sys/fs/cgroup", name), v2: true}
	if text, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers"); err != nil || !strings.Contains(string(text), "memory") {
		g.Dir, g.v2 = filepath.Join("/sys/fs/cgroup/memory", name), false
	} else {
		_ = os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+memory"), 0o644)
	}
	if err := os.Mkdir(g.Dir, 0o755); err != nil {
		return nil, err
	}
	file, swapFile, swap := "memory.max", "memory.swap.max", "0"
	if !g.v2 {
		file, swapFile, swap = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", strconv.Itoa(limit)
	}
	if err := os.WriteFile(filepath.Join(g.Dir, file), []byte(strconv.Itoa(limit)), 0o644); err != nil {
		g.Remove()
		return nil, err
	}
	_ = os.WriteFile(filepath.Join(g.Dir, swapFile), []byte(swap), 0o644)
	return g, nil
}

// Remove removes the group; its processes must have ended.
func (g *Group) Remove() { _ = os.Remove(g.Dir) }

func (g *Group) read(file string) string {
	text, _ := os.ReadFile(filepath.Join(g.Dir, file))
	return strings.TrimSpace(string(text))
}

// Wrapper is a command that joins the group and then becomes the program that follows it.
func (g *Group) Wrapper() []string {
	return []string{"/bin/sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, g.Dir}
}

// Killed is how many processes the kernel has killed for lack of memory in the group.
func (g *Group) Killed() int {
	file := "memory.oom_control"
	if g.v2 {
		file = "memory.events"
	}
	for _, line := range strings.Split(g.read(file), "\n") {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "oom_kill" {
			n, _ := strconv.Atoi(fields[1])
			return n
		}
	}
	return 0
}

// Figures is what the kernel says of the group.
func (g *Group) Figures() string {
	peak, hits := g.read("memory.peak"), strings.ReplaceAll(g.read("memory.events"), "\n", ", ")
	if !g.v2 {
		peak, hits = g.read("memory.max_usage_in_bytes"), "at the limit "+g.read("memory.failcnt")+" times"
	}
	return fmt.Sprintf("peak %s bytes, %s, %d killed", peak, hits, g.Killed())
}
