package e2e

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/s3"
)

// storedHour makes the directory of a store with files of some minutes, which no process uses.
func storedHour(t *testing.T, minutes int) (dir string, start time.Time) {
	t.Helper()
	dir = t.TempDir() + "/store"
	start = time.Now().Add(-2 * time.Hour).Truncate(time.Minute)
	receive := loop.Host() + ":4040"
	p := run(t, pushedStoreConfig(receive, "all", dir, "stretch: 1m"))
	pushHour(t, start, minutes, 2, func(int) []string { return []string{"http://" + receive} })
	p.stop()
	return dir, start
}

// storeCommand runs `profpull store` with the key of the fake in the environment.
func storeCommand(t *testing.T, s *s3.Server, args ...string) result {
	t.Helper()
	cmd := command(t, append([]string{"store"}, args...)...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s3.KeyID, "AWS_SECRET_ACCESS_KEY="+s3.Secret, "AWS_REGION="+s3.Region, "AWS_ENDPOINT_URL_S3="+s.URL(),
		"GOOGLE_APPLICATION_CREDENTIALS=/nowhere/key.json") // says nothing about buckets of S3
	return callCommand(t, cmd, "")
}

// lines reads lines of JSON.
func linesOf(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var one map[string]any
		decode(t, []byte(line), &one)
		all = append(all, one)
	}
	return all
}

// The directory of a store is pushed, listed, verified and pulled; the pulled directory answers as the first one does.
func TestStorePushAndPull(t *testing.T) {
	t.Parallel()
	s := startS3(t)
	dir, start := storedHour(t, 4)
	const url = "s3://profiles/moved"
	exits := func(code int, r result, parts ...string) result {
		t.Helper()
		require(t, r.code == code, "exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		for _, part := range parts {
			expect(t, strings.Contains(r.stdout+r.stderr, part), "expected %q in\n%s%s", part, r.stdout, r.stderr)
		}
		return r
	}
	exits(exitDone, storeCommand(t, s, "list", dir), " open\n", "4 files, 16 profiles, ")
	exits(exitDone, storeCommand(t, s, "push", dir, url, "--writer", "laptop"), "4 files uploaded", "with 16 profiles")
	exits(exitDone, storeCommand(t, s, "push", dir, url, "--writer", "laptop"), "0 files uploaded", "with 16 profiles")
	exits(exitDone, storeCommand(t, s, "verify", dir), " fine\n", "4 files, 16 profiles, ")
	all := linesOf(t, exits(exitDone, storeCommand(t, s, "list", url, "--json")).stdout)
	expect(t, len(all) == 5 && all[0]["writer"] == "laptop" && all[0]["profiles"] == 4.0 && all[0]["state"] == "fine" && all[4]["files"] == 4.0,
		"%v", all)
	exits(exitDone, storeCommand(t, s, "verify", url), " laptop               fine\n", "4 files, 16 profiles, ")
	// An hour of one writer; what is there already is skipped.
	pulled := t.TempDir() + "/pulled"
	second := start.Add(time.Minute).UTC().Format(time.RFC3339)
	exits(exitDone, storeCommand(t, s, "pull", url, pulled, "--from", second, "--until", second), "1 files pulled", "0 present")
	exits(exitDone, storeCommand(t, s, "pull", url, pulled, "--writer", "laptop"), "3 files pulled", "1 present")
	exits(exitDone, storeCommand(t, s, "pull", url, pulled, "--writer", "nobody"), "0 files pulled", "0 present")
	answers := func(dir string) string {
		p := run(t, fmt.Sprintf("scrape_configs: []\nwrite: [{name: all, url: \"store://%s\", store: {stretch: 1m}}]\n", dir))
		defer p.stop()
		return answersOf(t, p.admin, start, start.Add(time.Hour), "imported-1")
	}
	sameAnswers(t, "pulled", answers(pulled), answers(dir))
	// The bucket of an endpoint in a file.
	b := bucketOf{url, s.URL()}
	config := writeConfig(t, readerConfig(b, ""))
	exits(exitDone, call(t, "", "store", "list", "kept", "--config", config), "4 files, 16 profiles, ")
	exits(exitInput, call(t, "", "store", "list", "other", "--config", config), `there is no endpoint "other"`)
}

// Damage, foreign objects and a failing bucket have texts and exit codes of their own; nothing is changed, and no secret shown.
func TestStoreVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	s := startS3(t)
	dir, _ := storedHour(t, 4)
	const url = "s3://profiles/moved"
	if r := storeCommand(t, s, "push", dir, url, "--writer", "w"); r.code != exitDone {
		t.Fatal(r)
	}
	data, indexes := s.Keys("/data/"), s.Keys("/index/")
	require(t, len(data) == 4 && len(indexes) == 4, "%v", s.Keys(""))
	body := append([]byte(nil), s.Objects()[data[0]].Body...)
	body[len(body)/2] ^= 1
	s.Change(data[0], body)
	s.Change(data[1], nil)
	s.Change(indexes[2], []byte("profpull archive index 9\nsomething new"))
	s.Change("moved/notes.txt", []byte("hello"))
	s.Change("moved/w/index/mine.txt", []byte("hello"))
	before := fmt.Sprint(s.Keys(""))
	all := linesOf(t, storeCommand(t, s, "verify", url, "--json").stdout)
	var states []string
	for _, line := range all[:len(all)-1] {
		states = append(states, fmt.Sprint(line["state"]))
	}
	equal(t, "states", strings.Join(states, " "), "damaged missing newer fine foreign foreign")
	has(t, "the problem", fmt.Sprint(all[0]["problem"]), "the hash of its bytes is")
	sums := all[len(all)-1]
	expect(t, sums["bad"] == 3.0 && sums["files"] == 4.0 && sums["other"] == 2.0, "sums %v", sums)
	ends(t, storeCommand(t, s, "verify", url), exitInput, "3 cannot be used; 2 foreign, unfinished or replaced", "*")
	r := ends(t, storeCommand(t, s, "pull", url, t.TempDir()+"/pulled"), exitInput, "2 files pulled", "*")
	has(t, "pull", r.stdout, "2 left out")
	equal(t, "objects after", fmt.Sprint(s.Keys("")), before)
	equal(t, "deletions", s.Requests(http.MethodDelete), 0)
	// A damaged file of a directory.
	files, err := filepath.Glob(dir + "/*.db")
	must(t, err)
	raw, err := os.ReadFile(files[0])
	must(t, err)
	copy(raw[len(raw)/2:], "damage")
	must(t, os.WriteFile(files[0], raw, 0o644))
	r = ends(t, storeCommand(t, s, "verify", dir), exitInput, "damaged: ", "*")
	has(t, "verify", r.stdout, "1 cannot be used")
	for _, c := range []struct {
		change func(s *s3.Server)
		says   string
	}{
		{func(s *s3.Server) { s.Secret = "other" }, "SignatureDoesNotMatch"},
		{func(s *s3.Server) { s.Secret, s.Bucket = s3.Secret, "others" }, "NoSuchBucket"},
	} {
		s.Set(c.change)
		for _, args := range [][]string{{"list", url}, {"verify", url}, {"pull", url, t.TempDir()}, {"push", dir, url, "-w", "w"}} {
			r := ends(t, storeCommand(t, s, args...), exitPeer, "*", c.says)
			lacks(t, fmt.Sprint(args), r.stdout+r.stderr, s3.Secret)
		}
	}
}

// A push that is killed again and again ends with what one that was not would have stored.
func TestStorePushIsKilled(t *testing.T) {
	t.Parallel()
	s := startS3(t)
	dir, _ := storedHour(t, 6)
	for n := 1; n <= 14; n++ {
		cmd := exec.Command(bin(t), "store", "push", dir, "s3://profiles/moved", "--writer", "w", "--quiet")
		cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s3.KeyID, "AWS_SECRET_ACCESS_KEY="+s3.Secret, "AWS_REGION="+s3.Region, "AWS_ENDPOINT_URL_S3="+s.URL())
		var once sync.Once
		left := 2 * n
		s.Set(func(s *s3.Server) {
			s.Arrived = func(*http.Request) {
				if left--; left == 0 {
					once.Do(func() { _ = cmd.Process.Kill() })
				}
			}
		})
		must(t, cmd.Start())
		_ = cmd.Wait()
	}
	s.Set(func(s *s3.Server) { s.Arrived = nil })
	ends(t, storeCommand(t, s, "push", dir, "s3://profiles/moved", "--writer", "w"), exitDone, "with 24 profiles", "*")
	r := ends(t, storeCommand(t, s, "verify", "s3://profiles/moved"), exitDone, "6 files, 24 profiles, ", "*")
	lacks(t, "verify", r.stdout, "foreign, unfinished or replaced")
}

// ---- Google -------------------------------------------------------------------------------------

// googleTokens is the token service for the key of a service account: it checks each JWT, and each token is another one.
type googleTokens struct {
	*loop.Server
	bucket *s3.Server
	key    *rsa.PrivateKey
	mu     sync.Mutex
	given  int
	wrong  []string
}

func (g *googleTokens) check(form string) string {
	parts := strings.Split(form, ".")
	if len(parts) != 3 {
		return "no JWT"
	}
	var claims struct {
		Iss, Scope, Aud string
		Iat, Exp        int64
	}
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := json.Unmarshal(payload, &claims); err != nil {
		return err.Error()
	}
	if err := rsa.VerifyPKCS1v15(&g.key.PublicKey, crypto.SHA256, sum[:], signature); err != nil {
		return err.Error()
	}
	now := time.Now().Unix()
	if claims.Iss != "me@p.iam.gserviceaccount.com" || claims.Scope != "https://www.googleapis.com/auth/devstorage.read_write" ||
		claims.Aud != g.URL()+"/token" || claims.Iat > now+60 || claims.Exp <= now || claims.Exp-claims.Iat > 3600 {
		return fmt.Sprintf("%+v", claims)
	}
	return ""
}

func (g *googleTokens) serve(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	problem := g.check(r.PostFormValue("assertion"))
	if r.URL.Path != "/token" || r.PostFormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || problem != "" {
		g.wrong = append(g.wrong, problem)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	g.given++
	token := fmt.Sprintf("ya29.secret-%d", g.given)
	g.bucket.Set(func(s *s3.Server) { s.Bearer = token })
	fmt.Fprintf(w, `{"access_token":%q,"expires_in":3599,"token_type":"Bearer"}`, token)
}

// An archive in a bucket of Google, with the JSON key of a service account; the sandbox lets the process read the file.
func TestArchiveInGoogle(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	s := startS3(t)
	s.Bearer = "none yet"
	g := &googleTokens{bucket: s, key: key}
	g.Server, err = loop.Start("", http.HandlerFunc(g.serve), nil)
	must(t, err)
	t.Cleanup(g.Down)
	account, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "me@p.iam.gserviceaccount.com", "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": g.URL() + "/token"})
	must(t, err)
	file := t.TempDir() + "/account.json"
	must(t, os.WriteFile(file, account, 0o600))
	dir := t.TempDir() + "/store"
	start := time.Now().Add(-2 * time.Hour).Truncate(time.Minute)
	receive := loop.Host() + ":4040"
	archive := fmt.Sprintf("archive: {url: gs://profiles/kept, name: w, gs: {credentials_file: %q, endpoint: %q}}", file, s.URL())
	config := pushedStoreConfig(receive, "kept", dir, "stretch: 1m, "+archive)
	p := run(t, config)
	pushHour(t, start, 2, 1, func(int) []string { return []string{"http://" + receive} })
	want := answersOf(t, p.admin, start, start.Add(time.Hour))
	p.stop()
	p = run(t, config)
	p.waitArchived(2)
	p.stop()
	reader := run(t, fmt.Sprintf("scrape_configs: []\nwrite: [{name: kept, url: \"store:///nowhere\", store: {read_only: true, %s}}]\n", archive))
	reader.waitArchived(2)
	sameAnswers(t, "the reader", answersOf(t, reader.admin, start, start.Add(time.Hour)), want)
	g.mu.Lock()
	expect(t, len(g.wrong) == 0 && g.given >= 3 && !strings.Contains(p.stderr.String()+reader.stderr.String(), "ya29"),
		"%d tokens, wrong requests %v", g.given, g.wrong)
	g.mu.Unlock()
	cmd := command(t, "store", "verify", "gs://profiles/kept", "--credentials-file", file, "--endpoint", s.URL())
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL_S3=http://127.0.0.1:1")
	ends(t, callCommand(t, cmd, ""), exitDone, "2 files, 4 profiles, ", "*")
}
