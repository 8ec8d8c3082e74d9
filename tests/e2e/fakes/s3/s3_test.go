package s3

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/check"
)

// put is a request as clients of AWS sign it.
func put(s *Server, key, body string) *http.Request {
	r, err := http.NewRequest(http.MethodPut, s.URL()+"/"+Bucket+"/"+key, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("X-Amz-Date", time.Now().UTC().Format(stamp))
	r.Header.Set("X-Amz-Content-Sha256", sum([]byte(body)))
	return r
}

func authorize(s *Server, r *http.Request, id, region string, signed ...string) {
	a := authorization{id: id, date: r.Header.Get("X-Amz-Date")[:8], region: region, signed: signed}
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s/%s/s3/aws4_request, SignedHeaders=%s, Signature=%s",
		id, a.date, region, strings.Join(signed, ";"), s.sign(r, a, r.Header.Get("X-Amz-Content-Sha256"))))
}

var usual = []string{"host", "x-amz-content-sha256", "x-amz-date"}

// The signature is that of the example which AWS has published for PUT (bucket examplebucket, key
// test$file.text), whose date and host are as they stand there.
func TestSignature(t *testing.T) {
	s := &Server{Secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	r, err := http.NewRequest(http.MethodPut, "https://examplebucket.s3.amazonaws.com/test$file.text", strings.NewReader("Welcome to Amazon S3."))
	check.Must(t, err)
	content := "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
	for name, value := range map[string]string{"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Date": "20130524T000000Z",
		"X-Amz-Storage-Class": "REDUCED_REDUNDANCY", "X-Amz-Content-Sha256": content} {
		r.Header.Set(name, value)
	}
	a := authorization{date: "20130524", region: "us-east-1",
		signed: []string{"date", "host", "x-amz-content-sha256", "x-amz-date", "x-amz-storage-class"}}
	check.Equal(t, "signature", s.sign(r, a, content), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")
}

// The fake refuses what the real one refuses, with the same code, and takes the rest.
func TestAnswers(t *testing.T) {
	s, err := Start()
	check.Must(t, err)
	t.Cleanup(s.Down)
	set := func(name, value string) func(r *http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	signing := func(more string) []string { return append(usual[:3:3], more) }
	for _, c := range []struct {
		name, code         string // code "" for what is taken
		path               string // "": a
		id, region, secret string // "": the right ones; id "none": not signed
		signed             []string
		before, after      func(r *http.Request) // the signature
	}{
		{name: "good", path: "env%3Dtest/a%2Bb/%C3%A4.pb.gz"},
		{name: "unsigned", code: "AccessDenied", id: "none"},
		{name: "basic", code: "AuthorizationHeaderMalformed", id: "none",
			after: func(r *http.Request) { r.SetBasicAuth(KeyID, Secret) }},
		{name: "another key", code: "InvalidAccessKeyId", id: "OTHER"},
		{name: "another region", code: "AuthorizationHeaderMalformed", region: "eu-other-2"},
		{name: "another secret", code: "SignatureDoesNotMatch", secret: "other"},
		{name: "another path than was signed", code: "SignatureDoesNotMatch",
			after: func(r *http.Request) { r.URL.Path += "b" }},
		{name: "another body than was signed", code: "XAmzContentSHA256Mismatch",
			after: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("b")) }},
		{name: "a header that is not signed", code: "AccessDenied", after: set("X-Amz-Meta-Profpull", "{}")},
		{name: "headers in disorder", code: "SignatureDoesNotMatch",
			signed: []string{"x-amz-date", "x-amz-content-sha256", "host"}},
		{name: "a token that nobody asked for", code: "ExpiredToken",
			before: set("X-Amz-Security-Token", "t"), signed: signing("x-amz-security-token")},
		{name: "of yesterday", code: "RequestTimeTooSkewed",
			before: set("X-Amz-Date", time.Now().Add(-24*time.Hour).UTC().Format(stamp))},
		{name: "in chunks", code: "MissingContentLength", after: func(r *http.Request) { r.ContentLength = -1 }},
		{name: "POST", code: "MethodNotAllowed", before: func(r *http.Request) { r.Method = http.MethodPost }},
		{name: "another bucket", code: "NoSuchBucket", before: func(r *http.Request) { r.URL.Path = "/others/a" }},
		{name: "a long key", code: "KeyTooLongError", path: strings.Repeat("a", maxKey+1)},
		{name: "much metadata", code: "MetadataTooLarge",
			before: set("X-Amz-Meta-Profpull", strings.Repeat("a", maxMetadata)), signed: signing("x-amz-meta-profpull")},
	} {
		or := func(value, otherwise string) string {
			if value == "" {
				return otherwise
			}
			return value
		}
		r := put(s, or(c.path, "a"), "a")
		if c.before != nil {
			c.before(r)
		}
		if c.signed == nil {
			c.signed = usual
		}
		if c.id != "none" {
			authorize(&Server{Secret: or(c.secret, Secret)}, r, or(c.id, KeyID), or(c.region, Region), c.signed...)
		}
		if c.after != nil {
			c.after(r)
		}
		before := len(s.Objects())
		resp, err := http.DefaultClient.Do(r)
		check.Require(t, err == nil, "%v %v", c.name, err)
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		check.Expect(t, (resp.StatusCode == 200) == (c.code == "") && (c.code == "" || strings.Contains(string(body), "<Code>"+c.code+"</Code>")),
			"%s: HTTP %d %s", c.name, resp.StatusCode, body)
		check.Equal(t, c.name+": taken", len(s.Objects()) > before, (c.code == ""))
	}
	_, ok := s.Objects()["env=test/a+b/ä.pb.gz"]
	check.Expect(t, ok, "stored %v", s.Objects())
}

// The signature of AWS's published example of a list: the query is a part of it.
func TestSignatureOfAQuery(t *testing.T) {
	s := &Server{Secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	r, err := http.NewRequest(http.MethodGet, "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", nil)
	check.Must(t, err)
	content := sum(nil)
	r.Header.Set("X-Amz-Date", "20130524T000000Z")
	r.Header.Set("X-Amz-Content-Sha256", content)
	a := authorization{date: "20130524", region: "us-east-1", signed: usual}
	check.Equal(t, "signature", s.sign(r, a, content), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
}
