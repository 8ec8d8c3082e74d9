package growth

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/loop"
)

// Program is a running `profpull run`.
type Program struct {
	Admin string // http://host:port
	wait  func() error
	pid   int
}

// Start runs the program with the configuration in a file and its log in dir, on a core of its own if
// pinned.
func Start(pinned bool, dir, program, config string, args ...string) *Program {
	listen := loop.Host() + ":4041"
	args = append([]string{"run", "--config", config, "--listen", listen}, args...)
	cmd, err := measure.Command(pinned, 0, filepath.Join(dir, "profpull.log"), program, args...)
	measure.Check(err)
	measure.Check(cmd.Start())
	return &Program{Admin: "http://" + listen, wait: cmd.Wait, pid: cmd.Process.Pid}
}

// End ends it as a service manager does.
func (p *Program) End() {
	_ = syscall.Kill(p.pid, syscall.SIGTERM)
	if err := p.wait(); err != nil {
		log.Printf("the program: %v", err)
	}
}

// WaitUntil waits until over says true, or for so long.
func WaitUntil(d time.Duration, over func() bool) {
	for end := time.Now().Add(d); time.Now().Before(end) && !over(); {
		time.Sleep(500 * time.Millisecond)
	}
}

// Status is a value in bytes of /proc/PID/status.
func (p *Program) Status(key string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	measure.Check(err)
	for _, line := range strings.Split(string(text), "\n") {
		var n int64
		if strings.HasPrefix(line, key+":") {
			_, err := fmt.Sscan(strings.TrimPrefix(line, key+":"), &n)
			measure.Check(err)
			return n << 10
		}
	}
	return 0
}

// Get reads a page of the admin server.
func (p *Program) Get(path string, read func(page io.Reader) error) {
	resp, err := http.Get(p.Admin + path)
	measure.Check(err)
	defer resp.Body.Close()
	measure.Check(read(resp.Body))
}

// Metrics calls f with each sample, as measure.Samples does.
func (p *Program) Metrics(f func(sample string, v float64)) {
	p.Get("/metrics", func(page io.Reader) error {
		_, err := measure.Samples(page, f)
		return err
	})
}

// Label is the value of a label of a sample, "" if it has none.
func Label(sample, name string) string {
	_, value, _ := strings.Cut(sample, name+`="`)
	value, _, _ = strings.Cut(value, `"`)
	return value
}

// Line prints what the metrics say of each destination.
func (p *Program) Line(when string) {
	values := map[string]map[string]float64{}
	p.Metrics(func(sample string, v float64) {
		name, _, _ := strings.Cut(sample, "{")
		short := strings.TrimPrefix(name, "profpull_write_")
		if short == name {
			return
		}
		endpoint := Label(sample, "endpoint")
		if values[endpoint] == nil {
			values[endpoint] = map[string]float64{}
		}
		if reason := Label(sample, "reason"); reason != "" && v > 0 {
			values[endpoint]["dropped "+reason] += v
		}
		values[endpoint][short] += v
	})
	fmt.Printf("%s (resident %d MiB, peak %d MiB, cpu %.1f s)\n", when, p.Status("VmRSS")>>20, p.Status("VmHWM")>>20, p.CPU())
	for endpoint, v := range values {
		if _, ok := v["accepted_profiles_total"]; !ok {
			continue
		}
		balance := "balances"
		if v["accepted_profiles_total"] != v["sent_profiles_total"]+v["dropped_profiles_total"]+v["merged_profiles_total"]+v["queued_profiles"]+v["in_flight_profiles"] {
			balance = "DOES NOT BALANCE"
		}
		fmt.Printf("  %-8s accepted %.0f, sent %.0f, merged %.0f, refused %.0f, queued %.0f (%.1f MiB), %s", endpoint+":", v["accepted_profiles_total"],
			v["sent_profiles_total"], v["merged_profiles_total"], v["refused_profiles_total"], v["queued_profiles"], v["queued_bytes"]/(1<<20), balance)
		for name, n := range v {
			if strings.HasPrefix(name, "dropped ") {
				fmt.Printf(", %s %.0f", name, n)
			}
		}
		fmt.Println()
	}
}

// CPU is the time that the program has used, in seconds.
func (p *Program) CPU() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	measure.Check(err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var user, system float64
	_, err = fmt.Sscan(fields[11], &user)
	measure.Check(err)
	_, err = fmt.Sscan(fields[12], &system)
	measure.Check(err)
	return (user + system) / 100
}
