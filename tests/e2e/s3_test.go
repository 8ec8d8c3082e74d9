package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/s3"
)

func startS3(t *testing.T) *s3.Server {
	t.Helper()
	s, err := s3.Start()
	must(t, err)
	t.Cleanup(s.Down)
	return s
}

// s3Keys is what an endpoint says of a server besides its bucket.
func s3Keys(url string) string {
	return fmt.Sprintf("endpoint: %q, region: %s, access_key_id: %s, secret_access_key: %q", url, s3.Region, s3.KeyID, s3.Secret)
}

// mark is what the name of an object has more than that of a file.
var mark = regexp.MustCompile(`_[0-9a-f]{8}(\.[a-z.]+)$`)

// largeRecording has more bytes than libcurl sends without an answer to "Expect: 100-continue".
func largeRecording(start time.Time) []byte {
	b := append(recording(start), make([]byte, 2<<20)...)
	binary.BigEndian.PutUint64(b[8:], uint64(len(b)))
	return b
}

// All kinds of profiles arrive in a bucket of a server that computes each signature itself, under the
// names that they have as files, with their labels; and a second time they replace themselves.
func TestS3Real(t *testing.T) {
	t.Parallel()
	s := startS3(t)
	s.Token = "hunter2-token"
	in, files, keys := realFiles(t), t.TempDir(), t.TempDir()
	writeFile(t, in, "large.jfr", largeRecording(time.Unix(1_700_000_000, 0)))
	writeFile(t, keys, "id", []byte(s.KeyID+"\n"))
	writeFile(t, keys, "secret", []byte(s.Secret+"\n"))
	writeFile(t, keys, "token", []byte(s.Token+"\n"))
	config := fmt.Sprintf(`write:
  - name: files
    url: "file://%s"
  - name: bucket
    url: s3://profiles/env=test/a+b/
    s3: {endpoint: "%s/", region: %s, access_key_id_file: %[4]s/id, secret_access_key_file: %[4]s/secret, session_token_file: %[4]s/token}
    headers: {x-amz-storage-class: STANDARD_IA}
    external_labels: {note: "zwei  Wörter 🎉"}
`, files, s.URL(), s.Region, keys)
	name := writeConfig(t, config)
	for _, endpoint := range []string{"files", "bucket", "bucket"} {
		expectCall(t, exitDone, "sent 7 profiles", "", "import", "--config", name, "--endpoint", endpoint, "--name", "shop/cart", in)
	}
	objects := s.Objects()
	expect(t, len(objects) == 7, "%d objects", len(objects))
	for key, o := range objects {
		path := mark.ReplaceAllString(strings.TrimPrefix(key, "env=test/a+b/"), "$1")
		want, err := os.ReadFile(filepath.Join(files, path))
		expect(t, err == nil && path != key && bytes.Equal(o.Body, want),
			"%s: %d bytes, of the file %d (%v)", key, len(o.Body), len(want), err)
		var note struct {
			From, Until time.Time
			Labels      map[string]string
		}
		decode(t, []byte(o.Metadata["profpull"]), &note)
		expect(t, note.Labels["service_name"] == "shop/cart" && note.Labels["note"] == "zwei  Wörter 🎉" && !note.Until.Before(note.From) && o.Puts == 2,
			"%s: %+v", key, note)
	}
}

// TestS3Refusals checks that the refusal of a bucket is reported in the server's words and with a remedy,
// and that nothing secret is shown.
func TestS3Refusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		change       func(s *s3.Server)
		says, remedy string
	}{
		{"secret", func(s *s3.Server) { s.Secret = "other" }, "HTTP 403: SignatureDoesNotMatch: ", "s3.secret_access_key is not that of"},
		{"key", func(s *s3.Server) { s.KeyID = "AKOTHER" }, "HTTP 403: InvalidAccessKeyId: ", "check s3.access_key_id"},
		{"token", func(s *s3.Server) { s.Token = "t" }, "HTTP 400: ExpiredToken: ", "renew access_key_id"},
		{"region", func(s *s3.Server) { s.Region = "eu-other-2" },
			"HTTP 400: AuthorizationHeaderMalformed: The authorization header is malformed; the region 'eu-test-1' is wrong; expecting 'eu-other-2' (eu-other-2)", "set s3.region"},
		{"bucket", func(s *s3.Server) { s.Bucket = "others" }, "HTTP 404: NoSuchBucket: ", "create it, or check url"},
		{"rights", func(s *s3.Server) { s.ReadOnly = true }, "HTTP 403: AccessDenied: ", "s3:PutObject"},
		{"clock", func(s *s3.Server) { s.Ahead = 20 * time.Minute }, "HTTP 403: RequestTimeTooSkewed: ", "the clocks of this machine"},
		{"elsewhere", func(s *s3.Server) {
			s.Faults.Set(&loop.Fault{Status: http.StatusMovedPermanently, Body: s3.Error("PermanentRedirect", "Please send all future requests to this endpoint.", "<Endpoint>profiles.s3-eu-west-3.amazonaws.com</Endpoint>")})
		}, "HTTP 301: PermanentRedirect: Please send all future requests to this endpoint. (profiles.s3-eu-west-3.amazonaws.com)", "another region"},
		{"page", func(s *s3.Server) { s.Faults.Set(&loop.Fault{Status: http.StatusOK, Body: "<html>welcome"}) }, "not the answer of a profile store", ""},
	} {
		c := c
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startS3(t)
			config := "write: [{name: bucket, url: 's3://profiles', s3: {" + s3Keys(s.URL()) + ", session_token: hunter3}}]\n"
			s.Token = "hunter3"
			c.change(s)
			line := verifyLines(t, exitPeer, config)["bucket"]
			has(t, "line", line, c.says, c.remedy)
			lacks(t, "line", line, "hunter3")
			expect(t, len(s.Objects()) == 0, "stored %v", s.Objects())
		})
	}
}

// A bucket that is slow to take is tried again, from the spool of another process as well: no profile
// is lost, and none is there twice. The bucket is a part of the host here, which a proxy finds.
func TestS3Outage(t *testing.T) {
	t.Parallel()
	s := startS3(t)
	s.Domain = "s3.eu-test-1.example"
	s.Faults.Set(&loop.Fault{Status: http.StatusServiceUnavailable, Body: s3.Error("SlowDown", "Please reduce your request rate.", "")})
	config := strings.Replace(spoolConfig("s3://profiles", t.TempDir(), "fsync: 1m", someTargets(t, 5)...), "write:\n  - {", fmt.Sprintf(`write:
  - {proxy_url: %q, s3: {endpoint: "http://%s", path_style: false, region: %s, access_key_id: %s, secret_access_key: %q}, `, s.URL(), s.Domain, s.Region, s.KeyID, s.Secret), 1)
	p := run(t, config, "--drain-timeout", "300ms")
	p.waitQueued("main", 30)
	p.stop()
	before := endpointSummary(t, p, "main")
	log := p.stderr.String()
	has(t, "the log", log, "SlowDown: Please reduce your request rate.")
	lacks(t, "the log", log, s.Secret)
	s.Faults.Set(nil)
	p = run(t, config)
	p.emptied()
	p.stop()
	after := endpointSummary(t, p, "main")
	expect(t, before["dropped"] == 0 && after["dropped"] == 0 && after["replayed"] == before["queued"] && len(s.Objects()) == after["sent"],
		"before %v, after %v, arrived %d, refused %v", before, after, len(s.Objects()), s.Refused())
}

// tokenService is the token service of AWS as IRSA uses it: each answer has another temporary key,
// which is the only one that the bucket accepts from then on.
type tokenService struct {
	*loop.Server
	bucket *s3.Server
	life   time.Duration
	mu     sync.Mutex
	tokens []string // that came along
	wrong  []string
	down   bool
}

func (s *tokenService) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("Authorization") != "" ||
		r.PostFormValue("Action") != "AssumeRoleWithWebIdentity" || r.PostFormValue("Version") != "2011-06-15" ||
		r.PostFormValue("RoleArn") != "arn:aws:iam::1:role/profiles" || r.PostFormValue("RoleSessionName") == "" {
		s.wrong = append(s.wrong, fmt.Sprint(r.Method, r.URL, r.PostForm))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.tokens = append(s.tokens, r.PostFormValue("WebIdentityToken"))
	token := fmt.Sprintf("hunter2-%d", len(s.tokens))
	s.bucket.Expect(token)
	fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
<Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, s.bucket.KeyID, s.bucket.Secret, token,
		time.Now().Add(s.life).UTC().Format(time.RFC3339))
}

func (s *tokenService) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.tokens...)
}

// A destination gets its keys for the token of a service account, in the sandbox, and renews them
// while it runs: the token in the file is replaced as a cluster replaces it, and each key is accepted
// only until the next one has been fetched.
func TestS3WebIdentity(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	service := &tokenService{bucket: startS3(t), life: 13 * time.Second}
	var err error
	service.Server, err = loop.Start("", http.HandlerFunc(service.serve), nil)
	must(t, err)
	t.Cleanup(service.Down)
	writeFile(t, dir, "token", []byte("hunter2-first\n"))
	s := service.bucket
	config := strings.Replace(spoolConfig("s3://profiles/p", t.TempDir(), "fsync: 1m", someTargets(t, 1)...), "write:\n  - {", fmt.Sprintf(`write:
  - {s3: {endpoint: %q, region: %s, credentials: auto}, `, s.URL(), s.Region), 1)
	p := runWithin(t, []string{"AWS_ROLE_ARN=arn:aws:iam::1:role/profiles", "AWS_WEB_IDENTITY_TOKEN_FILE=" + dir + "/token",
		"AWS_ENDPOINT_URL_STS=" + service.URL(), "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="}, "--config", writeConfig(t, config))
	p.wait("the first object", func() string {
		return unless(len(s.Objects()) != 0, "refused %v, asked with %d tokens", s.Refused(), len(service.seen()))
	})
	writeFile(t, dir, "token", []byte("hunter2-second\n"))
	p.wait("a renewed key", func() string {
		tokens := service.seen()
		return unless(tokens[len(tokens)-1] == "hunter2-second", "%d tokens", len(tokens))
	})
	before := len(s.Objects())
	p.wait("objects with it", func() string {
		n := len(s.Objects())
		return unless(n > before, "%d objects, refused %v", n, s.Refused())
	})
	tokens := service.seen()
	expect(t, tokens[0] == "hunter2-first" && len(service.wrong) == 0, "tokens %v, wrong requests %v", tokens, service.wrong)
	_, body := p.get("/metrics")
	has(t, "the answer", body, `profpull_credentials_fetches_total{bucket="main",source="web_identity",result="ok"}`)
	p.stop()
	log := p.stderr.String()
	lacks(t, "the log", log, "hunter2")
	lacks(t, "the answer", body, "hunter2")
}

// Without a source, and with one that cannot be reached, the reason and the remedy are said.
func TestS3WithoutCredentials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, source string
		env          []string
		says         []string
	}{
		{"environment", "environment", []string{"AWS_ACCESS_KEY_ID="}, []string{"the environment variable AWS_ACCESS_KEY_ID is not set"}},
		{"none", "auto", []string{"AWS_ACCESS_KEY_ID=", "AWS_ROLE_ARN=", "AWS_EC2_METADATA_DISABLED=true"}, []string{"no credentials: the environment has neither"}},
		{"instance", "instance", []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1"},
			[]string{"PUT http://127.0.0.1:1/latest/api/token: ", "set the hop limit"}},
		{"container", "container", []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://example.com/", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI="},
			[]string{"expected https, or http to 169.254.170.2"}},
	} {
		c := c
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startS3(t)
			name := writeConfig(t, fmt.Sprintf("write: [{name: bucket, url: 's3://profiles', s3: {endpoint: %q, region: %s, credentials: %s}}]\n", s.URL(), s.Region, c.source))
			cmd := command(t, "verify", "--config", name)
			cmd.Env = append(cmd.Env, c.env...)
			r := callCommand(t, cmd, "")
			for _, part := range c.says {
				has(t, "the output", r.stdout+r.stderr, part)
			}
			expect(t, len(s.Refused()) == 0 && len(s.Objects()) == 0, "a request without keys: %v", s.Refused())
		})
	}
}

// A process that still waits for its first key ends in time, and its profiles stay in the spool.
func TestS3EndsWhileItWaitsForKeys(t *testing.T) {
	t.Parallel()
	s, dir, release := startS3(t), t.TempDir(), make(chan struct{})
	asked := make(chan struct{}, 100)
	service, err := loop.Start("", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}), nil)
	must(t, err)
	t.Cleanup(service.Down)
	t.Cleanup(func() { close(release) })
	writeFile(t, dir, "token", []byte("hunter2"))
	config := strings.Replace(spoolConfig("s3://profiles/p", t.TempDir(), "fsync: 1m", someTargets(t, 1)...), "write:\n  - {", fmt.Sprintf(`write:
  - {s3: {endpoint: %q, region: %s, credentials: web_identity}, `, s.URL(), s.Region), 1)
	p := runWithin(t, []string{"AWS_ROLE_ARN=arn", "AWS_WEB_IDENTITY_TOKEN_FILE=" + dir + "/token", "AWS_ENDPOINT_URL_STS=" + service.URL()},
		"--config", writeConfig(t, config), "--drain-timeout", "300ms")
	<-asked
	p.waitQueued("main", 3)
	p.stop()
	after := endpointSummary(t, p, "main")
	expect(t, after["dropped"] == 0 && after["sent"] == 0 && after["queued"] != 0 && len(s.Objects()) == 0,
		"%v, objects %d, refused %v", after, len(s.Objects()), s.Refused())
}
