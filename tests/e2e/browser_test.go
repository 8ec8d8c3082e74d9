package e2e

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// browser is a headless Chromium that is driven through its pipe: JSON texts, each ended by a NUL.
type browser struct {
	t       *testing.T
	to      *os.File
	session string
	mu      sync.Mutex
	next    int
	answers map[int]chan map[string]any
	errs    []string // exceptions and errors of the page
	loaded  int      // pages
}

// newBrowser skips the test where there is no Chromium (scripts/deps.sh test installs one).
func newBrowser(t *testing.T) *browser {
	t.Helper()
	var path string
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && name != "" {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium: scripts/deps.sh test installs it where Debian has it")
	}
	dir, err := os.MkdirTemp("", "chromium")
	must(t, err)
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic", "--hide-scrollbars",
		"--user-data-dir="+dir, "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir)
	fromUs, to, err := os.Pipe()
	must(t, err)
	from, fromIt, err := os.Pipe()
	must(t, err)
	cmd.ExtraFiles = []*os.File{fromUs, fromIt}
	must(t, cmd.Start())
	fromUs.Close()
	fromIt.Close()
	b := &browser{t: t, to: to, answers: map[int]chan map[string]any{}}
	done := make(chan struct{})
	go func() { b.read(from); close(done) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		to.Close()
		<-done
		from.Close()
		_ = os.RemoveAll(dir)
	})
	created := b.call("Target.createTarget", map[string]any{"url": "about:blank"})
	attached := b.call("Target.attachToTarget", map[string]any{"targetId": created["targetId"], "flatten": true})
	b.session = attached["sessionId"].(string)
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil)
	}
	return b
}

func (b *browser) read(from *os.File) {
	r := bufio.NewReader(from)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m map[string]any
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if id, ok := m["id"].(float64); ok {
			if c := b.answers[int(id)]; c != nil {
				c <- m
				delete(b.answers, int(id))
			}
		}
		switch m["method"] {
		case "Runtime.exceptionThrown":
			b.errs = append(b.errs, string(text[:len(text)-1]))
		case "Log.entryAdded":
			if e := m["params"].(map[string]any)["entry"].(map[string]any); e["level"] == "error" {
				b.errs = append(b.errs, string(text[:len(text)-1]))
			}
		case "Page.loadEventFired":
			b.loaded++
		}
		b.mu.Unlock()
	}
}

func (b *browser) call(method string, params map[string]any) map[string]any {
	b.t.Helper()
	b.mu.Lock()
	b.next++
	id := b.next
	answer := make(chan map[string]any, 1)
	b.answers[id] = answer
	b.mu.Unlock()
	m := map[string]any{"id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	require(b.t, err == nil, "%s: %v", method, err)
	select {
	case got := <-answer:
		e := got["error"]
		require(b.t, e == nil, "%s: %v", method, e)
		result, _ := got["result"].(map[string]any)
		return result
	case <-time.After(patience()):
		b.t.Fatalf("%s: no answer from Chromium", method)
	}
	return nil
}

// size of the window, in the colours of light or dark.
func (b *browser) look(width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
}

// open loads a page, waits until an expression is true in it, and has it checked by axe-core if that is there.
func (b *browser) open(url, ready string) {
	b.t.Helper()
	b.mu.Lock()
	before := b.loaded
	b.mu.Unlock()
	b.call("Page.navigate", map[string]any{"url": url})
	wait(b.t, url, func() string {
		b.mu.Lock()
		isLoaded := b.loaded > before
		b.mu.Unlock()
		if !isLoaded {
			return "not loaded"
		}
		return unless(b.eval(ready) == true, "not yet: %s", ready)
	})
	b.accessible(url)
}

// eval is the value of an expression in the page; a promise is waited for.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	got := b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	e := got["exceptionDetails"]
	require(b.t, e == nil, "%s: %v", expression, e)
	return got["result"].(map[string]any)["value"]
}

func (b *browser) text(expression string) string {
	b.t.Helper()
	return fmt.Sprint(b.eval(expression))
}

// shoot writes a picture of the window to the directory of screenshots below the build directory.
func (b *browser) shoot(name string) {
	b.t.Helper()
	got := b.call("Page.captureScreenshot", map[string]any{"format": "png"})
	png, err := base64.StdEncoding.DecodeString(got["data"].(string))
	must(b.t, err)
	dir := filepath.Join(filepath.Dir(bin(b.t)), "screenshots")
	if os.MkdirAll(dir, 0o777) != nil || os.WriteFile(filepath.Join(dir, name+".png"), png, 0o666) != nil {
		b.t.Logf("%s could not be written to %s", name, dir)
	}
	expect(b.t, len(png) >= 10000, "the picture %s has %d bytes: an empty page?", name, len(png))
}

// sound fails the test if a script has failed or the browser has refused something.
func (b *browser) sound() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.errs {
		b.t.Errorf("the page has an error: %s", e)
	}
	b.errs = nil
}
