// The image that scripts/release.sh makes: its layout, what it holds, and that the program in it runs
// as the user of the image, scrapes a real exporter, and pushes over TLS and HTTP/2.
//
// Runs as root, for chroot and the owners of files; programs of another architecture run with qemu.
//
// PROFPULL_IMAGE      the tar file with the OCI layout
// PROFPULL_EXPORTER   Debian's prometheus-node-exporter
// PROFPULL_IMAGE_MAX  how many bytes the blobs of one architecture may have
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ---- the layout -----------------------------------------------------------------------------------

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	} `json:"platform"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
	Manifests     []descriptor `json:"manifests"`
}

type config struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		User         string
		ExposedPorts map[string]struct{}
		Env          []string
		Entrypoint   []string
		Cmd          []string
		StopSignal   string
		WorkingDir   string
		Labels       map[string]string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

type layout map[string][]byte

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

func readLayout(t *testing.T) layout {
	t.Helper()
	file, err := os.Open(os.Getenv("PROFPULL_IMAGE"))
	if err != nil {
		t.Fatalf("PROFPULL_IMAGE: %v", err)
	}
	defer file.Close()
	all := layout{}
	for r := tar.NewReader(file); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(h.Name, "./")] = content
	}
}

func (l layout) blob(t *testing.T, d descriptor) []byte {
	t.Helper()
	b, ok := l["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
	if !ok || len(b) != d.Size || digest(b) != d.Digest {
		t.Fatalf("blob %s: there: %v, %d bytes of %d, digest %s", d.Digest, ok, len(b), d.Size, digest(b))
	}
	return b
}

func parse(t *testing.T, text []byte, into interface{}) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// image is that of one architecture.
type image struct {
	config config
	layer  []byte // unpacked
	size   int    // of its blobs
}

func readImages(t *testing.T) map[string]image {
	t.Helper()
	l := readLayout(t)
	var version struct{ ImageLayoutVersion string }
	parse(t, l["oci-layout"], &version)
	if version.ImageLayoutVersion != "1.0.0" {
		t.Errorf("version of the layout: %q", version.ImageLayoutVersion)
	}
	var top, index manifest
	parse(t, l["index.json"], &top)
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] == "" {
		t.Fatalf("index.json: %+v", top)
	}
	parse(t, l.blob(t, top.Manifests[0]), &index)
	images := map[string]image{}
	for _, d := range index.Manifests {
		var m manifest
		text := l.blob(t, d)
		parse(t, text, &m)
		if len(m.Layers) != 1 {
			t.Fatalf("%d layers", len(m.Layers))
		}
		i := image{size: len(text) + m.Config.Size + m.Layers[0].Size}
		parse(t, l.blob(t, m.Config), &i.config)
		z, err := gzip.NewReader(bytes.NewReader(l.blob(t, m.Layers[0])))
		if err != nil {
			t.Fatal(err)
		}
		if i.layer, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
		if i.config.Architecture != d.Platform.Architecture || i.config.OS != "linux" || d.Platform.OS != "linux" {
			t.Errorf("platform %+v, config %s/%s", d.Platform, i.config.OS, i.config.Architecture)
		}
		if !reflect.DeepEqual(i.config.RootFS.DiffIDs, []string{digest(i.layer)}) {
			t.Errorf("diff_ids %v, the layer has %s", i.config.RootFS.DiffIDs, digest(i.layer))
		}
		images[d.Platform.Architecture] = i
	}
	return images
}

func TestLayout(t *testing.T) {
	limit, err := strconv.Atoi(os.Getenv("PROFPULL_IMAGE_MAX"))
	if err != nil {
		t.Fatalf("PROFPULL_IMAGE_MAX: %v", err)
	}
	images := readImages(t)
	for _, arch := range []string{"amd64", "arm64"} {
		i, ok := images[arch]
		if !ok {
			t.Fatalf("no image for %s", arch)
		}
		c := i.config.Config
		if c.User != "65532:65532" || c.WorkingDir != "/var/lib/profpull" || c.StopSignal != "SIGTERM" || !reflect.DeepEqual(c.Entrypoint, []string{"/usr/bin/profpull"}) {
			t.Errorf("%s: %+v", arch, c)
		}
		if _, ok := c.ExposedPorts["4041/tcp"]; !ok {
			t.Errorf("%s: ports %v", arch, c.ExposedPorts)
		}
		for _, name := range []string{"title", "description", "version", "revision", "created", "licenses"} {
			if _, ok := c.Labels["org.opencontainers.image."+name]; !ok {
				t.Errorf("%s: no label %s", arch, name)
			}
		}
		fmt.Printf("%s: %d bytes compressed, %d unpacked\n", arch, i.size, len(i.layer))
		if i.size > limit {
			t.Errorf("%s: %d bytes are more than %d", arch, i.size, limit)
		}
	}
}

// ---- what it holds --------------------------------------------------------------------------------

func (i image) entries(t *testing.T, visit func(h *tar.Header, r io.Reader)) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(i.layer)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		h.Name = "/" + strings.Trim(strings.TrimPrefix(h.Name, "."), "/")
		visit(h, r)
	}
}

// All that may be in it: the program, libraries, the loader, certificates, the user, copyright files.
var allowed = regexp.MustCompile(`^/(usr/bin/profpull|usr/lib/[a-z0-9_]+-linux-gnu/lib[a-z0-9_.-]+\.so(\.[0-9]+)*|` +
	`lib(64)?/ld-linux-[a-z0-9-]+\.so\.[0-9]|etc/ssl/certs/ca-certificates\.crt|etc/(passwd|group|nsswitch\.conf)|` +
	`usr/share/doc/[a-z0-9.+-]+/copyright)$`)

func TestContent(t *testing.T) {
	for arch, i := range readImages(t) {
		var names []string
		times := map[time.Time]bool{}
		i.entries(t, func(h *tar.Header, _ io.Reader) {
			names = append(names, h.Name)
			times[h.ModTime] = true
			own := h.Name == "/var/lib/profpull"
			if own != (h.Uid == 65532 && h.Gid == 65532) || !own && (h.Uid != 0 || h.Gid != 0) {
				t.Errorf("%s: %s belongs to %d:%d", arch, h.Name, h.Uid, h.Gid)
			}
			if h.Typeflag != tar.TypeDir && (h.Typeflag != tar.TypeReg || !allowed.MatchString(h.Name)) {
				t.Errorf("%s: %s, type %c", arch, h.Name, h.Typeflag)
			}
			if h.Mode&0o6000 != 0 || h.Mode&0o022 != 0 && h.Name != "/tmp" {
				t.Errorf("%s: %s has the mode %o", arch, h.Name, h.Mode)
			}
			if strings.HasPrefix(h.Name, "/usr/bin/") && h.Name != "/usr/bin/profpull" {
				t.Errorf("%s: another program: %s", arch, h.Name)
			}
		})
		if !sort.StringsAreSorted(names) || len(times) != 1 {
			t.Errorf("%s: not reproducible: sorted %v, %d times", arch, sort.StringsAreSorted(names), len(times))
		}
	}
}

// ---- it runs --------------------------------------------------------------------------------------

func unpack(t *testing.T, i image) string {
	t.Helper()
	dir := t.TempDir()
	i.entries(t, func(h *tar.Header, r io.Reader) {
		path := filepath.Join(dir, h.Name)
		mode := h.FileInfo().Mode()
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else {
			content, err := io.ReadAll(r)
			if err == nil {
				err = os.WriteFile(path, content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(path, h.Uid, h.Gid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	})
	return dir
}

// command is the entry point of the image with arguments of ours, as the user of the image.
func command(root string, args ...string) *exec.Cmd {
	return &exec.Cmd{
		Path: "/usr/bin/profpull", Args: append([]string{"profpull"}, args...), Dir: "/",
		Env:         []string{"PATH=/usr/bin"},
		SysProcAttr: &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}, Pdeathsig: syscall.SIGKILL},
	}
}

func output(t *testing.T, root string, args ...string) string {
	t.Helper()
	out, err := command(root, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("profpull %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// startExporter returns the address of a real exporter that answers.
func startExporter(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	cmd := exec.Command(os.Getenv("PROFPULL_EXPORTER"), "--web.listen-address="+address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if r, err := http.Get("http://" + address + "/debug/pprof/cmdline"); err == nil {
			r.Body.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal("the exporter does not answer")
		}
	}
}

// sink takes pushes over TLS, and counts them by the version of HTTP.
type sink struct {
	mu     sync.Mutex
	pushes map[string]int
	server *httptest.Server
}

func newSink(t *testing.T) *sink {
	s := &sink{pushes: map[string]int{}}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(body) > 0 {
			s.pushes[r.Proto]++
		}
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	}))
	s.server.EnableHTTP2 = true
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s
}

func (s *sink) count() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := map[string]int{}
	for k, v := range s.pushes {
		copied[k] = v
	}
	return copied
}

const settings = `
server: {listen: ""}
scrape_configs:
  - job_name: exporter
    scrape_interval: 1s
    static_configs: [{targets: [%q], labels: {service_name: node-exporter}}]
    profiles: {process_cpu: {enabled: false}}
write:
  - name: local
    url: store:///var/lib/profpull/store
  - name: main
    url: %s
    tls_config: {ca_file: /etc/profpull/ca.pem}
`

func TestRuns(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("needs root")
	}
	address := startExporter(t)
	for arch, i := range readImages(t) {
		i := i
		t.Run(arch, func(t *testing.T) {
			root := unpack(t, i)
			if out := output(t, root, "version"); !strings.Contains(out, i.config.Config.Labels["org.opencontainers.image.version"]) {
				t.Errorf("version: %s", out)
			}
			s := newSink(t)
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
			text := fmt.Sprintf(settings, address, s.server.URL)
			for name, content := range map[string]string{"profpull.yaml": text, "ca.pem": string(ca)} {
				if err := os.WriteFile(filepath.Join(root, "etc/profpull", name), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			output(t, root, "check", "--config", "/etc/profpull/profpull.yaml")

			cmd := command(root, i.config.Config.Cmd...)
			var log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &log, &log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(2 * time.Minute); len(s.count()) == 0; time.Sleep(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
					t.Fatalf("nothing was pushed\n%s", log.String())
				}
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, log.String())
			}
			if got := s.count(); got["HTTP/2.0"] == 0 {
				t.Errorf("pushes: %v", got)
			}
			if found, _ := filepath.Glob(filepath.Join(root, "var/lib/profpull/store/*.db")); len(found) == 0 {
				t.Errorf("nothing in the store\n%s", log.String())
			}
		})
	}
}

// Without a configuration, profiles are kept in the working directory, which belongs to the image's user. Where it is read-only,
// the message says what to mount.
func TestFirstRun(t *testing.T) {
	address := startExporter(t)
	for arch, i := range readImages(t) {
		i := i
		t.Run(arch, func(t *testing.T) {
			root := unpack(t, i)
			run := func(dir string) (string, error) {
				cmd := command(root, "run", "--target", "exporter="+address, "--listen", "", "--for", "3s")
				cmd.Dir, cmd.Env = dir, i.config.Config.Env
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			if out, err := run(i.config.Config.WorkingDir); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if found, _ := filepath.Glob(filepath.Join(root, "var/lib/profpull/profpull-data/*.db")); len(found) == 0 {
				t.Error("nothing in the working directory")
			}
			if out, err := run("/etc"); err == nil || !strings.Contains(out, "mount a volume and name it: -v profiles:/data, --data /data") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Another reader of layouts takes it, where there is one.
func TestSkopeo(t *testing.T) {
	skopeo, err := exec.LookPath("skopeo")
	if err != nil {
		t.Skip("no skopeo")
	}
	for _, arch := range []string{"amd64", "arm64"} {
		out, err := exec.Command(skopeo, "--override-arch", arch, "inspect", "oci-archive:"+os.Getenv("PROFPULL_IMAGE")).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte(`"Architecture": "`+arch+`"`)) {
			t.Errorf("%s: %v\n%s", arch, err, out)
		}
	}
}

// The Dockerfile says the same of its image.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	quoted := func(v []string) string { b, _ := json.Marshal(v); return string(b) }
	for arch, i := range readImages(t) {
		c := i.config.Config
		lines := []string{"USER " + c.User, "WORKDIR " + c.WorkingDir, "STOPSIGNAL " + c.StopSignal, "ENTRYPOINT " + quoted(c.Entrypoint), "CMD " + quoted(c.Cmd)}
		for port := range c.ExposedPorts {
			lines = append(lines, "EXPOSE "+port)
		}
		for _, e := range c.Env {
			lines = append(lines, "ENV "+e)
		}
		for _, line := range lines {
			if !strings.Contains(string(text), "\n"+line+"\n") {
				t.Errorf("%s: no line %q", arch, line)
			}
		}
		for _, name := range []string{"title", "description", "version", "licenses"} {
			label := "org.opencontainers.image." + name
			if !strings.Contains(string(text), fmt.Sprintf("%s=%q", label, c.Labels[label])) {
				t.Errorf("%s: label %s=%q", arch, label, c.Labels[label])
			}
		}
	}
}
