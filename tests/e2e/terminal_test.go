package e2e

import (
	"fmt"
	"os"
	"os/exec"
	ossignal "os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// A terminal is a pseudo-terminal of the kernel with a program in it.
type terminal struct {
	t      *testing.T
	master *os.File
	tty    *os.File // the program's side, which stays open, so that its modes can be read
	cmd    *exec.Cmd
	out    output
}

func ioctl(t *testing.T, fd uintptr, request uintptr, arg unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg)); errno != 0 {
		t.Fatal(errno)
	}
}

// openTerminal starts a program in a terminal of this size.
func openTerminal(t *testing.T, columns, rows uint16, cmd *exec.Cmd) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	must(t, err)
	var number uint32
	var unlock int32
	ioctl(t, master.Fd(), syscall.TIOCGPTN, unsafe.Pointer(&number))
	ioctl(t, master.Fd(), syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	x := &terminal{t: t, master: master, tty: tty, cmd: cmd}
	x.resize(columns, rows)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, cmd.Start())
	go func() {
		b := make([]byte, 65536)
		for {
			n, err := master.Read(b)
			_, _ = x.out.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		master.Close()
		tty.Close()
	})
	return x
}

func (x *terminal) resize(columns, rows uint16) {
	size := [4]uint16{rows, columns, 0, 0}
	ioctl(x.t, x.master.Fd(), syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

// modes returns the flags of the terminal.
func (x *terminal) modes() [4]uint32 {
	var m syscall.Termios
	ioctl(x.t, x.tty.Fd(), syscall.TCGETS, unsafe.Pointer(&m))
	return [4]uint32{m.Iflag, m.Oflag, m.Cflag, m.Lflag}
}

func (x *terminal) types(keys string) {
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// wait waits until a condition holds.
func (x *terminal) wait(what string, holds func() bool) {
	x.t.Helper()
	for deadline := time.Now().Add(patience()); !holds(); time.Sleep(5 * time.Millisecond) {
		require(x.t, !time.Now().After(deadline), "%s: not within %s; the terminal has\n%q", what, patience(), x.out.String())
	}
}

// shows waits until the part of the output after the last clearing of the screen has a text.
func (x *terminal) shows(part string) {
	x.t.Helper()
	x.wait(part, func() bool {
		text := x.out.String()
		return strings.Contains(text[strings.LastIndex(text, "\033[H")+1:], part)
	})
}

func browse(t *testing.T) (x *terminal, before [4]uint32) {
	t.Helper()
	cmd := command(t, "flame", "--interactive", cartProfile(t))
	cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=1", "LC_ALL=C")
	x = openTerminal(t, 80, 24, cmd)
	// The modes of a new terminal are those that it must have afterwards.
	before = [4]uint32{syscall.ICRNL | syscall.IXON, syscall.OPOST | syscall.ONLCR, 0, syscall.ISIG | syscall.ICANON | syscall.ECHO}
	x.shows("arrows: select")
	return x, before
}

// restored waits until the terminal is as a shell needs it.
func (x *terminal) restored(before [4]uint32) {
	x.t.Helper()
	x.wait("the modes", func() bool {
		now := x.modes()
		return now[0]&before[0] == before[0] && now[1]&before[1] == before[1] && now[3]&before[3] == before[3]
	})
	x.wait("the screen", func() bool { return strings.HasSuffix(x.out.String(), "\033[0m\033[?25h\033[?1049l") })
}

// Keys move, zoom and search; the size of the terminal changes; q quits.
func TestFlameKeys(t *testing.T) {
	t.Parallel()
	x, before := browse(t)
	expect(t, x.modes()[3]&(syscall.ICANON|syscall.ECHO) == 0, "the terminal is not in raw mode")
	x.types("\033[B\033[B")
	x.shows("net/http.serverHandler.ServeHTTP\r")
	x.types("\r")
	x.shows("in net/http.serverHandler.ServeHTTP\r")
	x.types("/json")
	x.shows("/json_")
	x.types("\r")
	x.shows(`"json": 1.74s, 55.06%`)
	x.types("n")
	x.shows("json.")
	x.types("\033") // alone: the escape key
	x.shows(`"json": 1.74s, 34.46%`)
	x.resize(40, 10)
	x.shows("\"json\": 1.74s, 34.46%; n, N: next, pre~")
	x.types("q")
	must(t, x.cmd.Wait())
	x.restored(before)
}

// The terminal is restored by each way to end: by the process itself, or by its guard.
func TestFlameRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGKILL,
		syscall.SIGSEGV, syscall.SIGABRT} {
		t.Run(signal.String(), func(t *testing.T) {
			if ossignal.Ignored(signal) {
				t.Skip("the tests run under nohup: the program inherits that it ignores this signal")
			}
			if signal == syscall.SIGSEGV && instrumented(t) {
				t.Skip("sanitizers catch this signal")
			}
			x, before := browse(t)
			if signal == syscall.SIGINT {
				x.types("\003") // Ctrl-C
			} else {
				_ = x.cmd.Process.Signal(signal)
			}
			err := x.cmd.Wait()
			status, ok := x.cmd.ProcessState.Sys().(syscall.WaitStatus)
			expect(t, ok && status.Signal() == signal, "%v, expected the end by %s", err, signal)
			x.restored(before)
		})
	}
}

// Ctrl-Z gives the terminal back while the program is stopped.
func TestFlameStops(t *testing.T) {
	t.Parallel()
	x, before := browse(t)
	x.types("\032")
	x.restored(before)
	_ = x.cmd.Process.Signal(syscall.SIGCONT)
	x.wait("raw mode", func() bool { return x.modes()[3]&syscall.ICANON == 0 })
	x.types("j")
	x.shows("net/http.(*conn).serve\r")
	x.types("q")
	must(t, x.cmd.Wait())
	x.restored(before)
}

// Without a terminal, --interactive is an error, and nothing is drawn.
func TestFlameWithoutTerminal(t *testing.T) {
	t.Parallel()
	expectCall(t, exitInput, "", "--interactive needs a terminal", "flame", "-i", cartProfile(t))
}

// In a terminal, TERM and COLORTERM choose the colours, and NO_COLOR switches them off.
func TestFlameColours(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"TERM=xterm-256color":                   "\033[48;5;",
		"TERM=xterm COLORTERM=truecolor":        "\033[48;2;",
		"TERM=xterm":                            "\033[4",
		"TERM=xterm COLORTERM=24bit NO_COLOR=1": "",
		"TERM=dumb":                             "",
	} {
		t.Run(env, func(t *testing.T) {
			cmd := command(t, "flame", cartProfile(t))
			cmd.Env = append([]string{"LC_ALL=C.UTF-8"}, strings.Fields(env)...)
			x := openTerminal(t, 100, 24, cmd)
			must(t, cmd.Wait())
			x.wait("the graph", func() bool { return strings.Contains(x.out.String(), "larger --width") })
			text := x.out.String()
			if want != "" && !strings.Contains(text, want) || want == "" && strings.Contains(text, "\033") {
				t.Errorf("expected %q in it: %.300q", want, text)
			}
		})
	}
}
