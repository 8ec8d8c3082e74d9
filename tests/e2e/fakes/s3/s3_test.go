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
	for _, c := range []struct {
		name, code string // code "" for what is taken
		request    func() *http.Request
	}{
		{"good", "", func() *http.Request {
			r := put(s, "env%3Dtest/a%2Bb/%C3%A4.pb.gz", "a")
			authorize(s, r, KeyID, Region, usual...)
			return r
		}},
		{"unsigned", "AccessDenied", func() *http.Request { return put(s, "a", "a") }},
		{"basic", "AuthorizationHeaderMalformed", func() *http.Request {
			r := put(s, "a", "a")
			r.SetBasicAuth(KeyID, Secret)
			return r
		}},
		{"another key", "InvalidAccessKeyId", func() *http.Request {
			r := put(s, "a", "a")
			authorize(s, r, "OTHER", Region, usual...)
			return r
		}},
		{"another region", "AuthorizationHeaderMalformed", func() *http.Request {
			r := put(s, "a", "a")
			authorize(s, r, KeyID, "eu-other-2", usual...)
			return r
		}},
		{"another secret", "SignatureDoesNotMatch", func() *http.Request {
			r := put(s, "a", "a")
			authorize(&Server{Secret: "other"}, r, KeyID, Region, usual...)
			return r
		}},
		{"another path than was signed", "SignatureDoesNotMatch", func() *http.Request {
			r := put(s, "a", "a")
			authorize(s, r, KeyID, Region, usual...)
			r.URL.Path += "b"
			return r
		}},
		{"another body than was signed", "XAmzContentSHA256Mismatch", func() *http.Request {
			r := put(s, "a", "a")
			authorize(s, r, KeyID, Region, usual...)
			r.Body = io.NopCloser(strings.NewReader("b"))
			return r
		}},
		{"a header that is not signed", "AccessDenied", func() *http.Request {
			r := put(s, "a", "a")
			authorize(s, r, KeyID, Region, usual...)
			r.Header.Set("X-Amz-Meta-Profpull", "{}")
			return r
		}},
		{"headers in disorder", "SignatureDoesNotMatch", func() *http.Request {
			r := put(s, "a", "a")
			authorize(s, r, KeyID, Region, "x-amz-date", "x-amz-content-sha256", "host")
			return r
		}},
		{"a token that nobody asked for", "ExpiredToken", func() *http.Request {
			r := put(s, "a", "a")
			r.Header.Set("X-Amz-Security-Token", "t")
			authorize(s, r, KeyID, Region, append(usual[:3:3], "x-amz-security-token")...)
			return r
		}},
		{"of yesterday", "RequestTimeTooSkewed", func() *http.Request {
			r := put(s, "a", "a")
			r.Header.Set("X-Amz-Date", time.Now().Add(-24*time.Hour).UTC().Format(stamp))
			authorize(s, r, KeyID, Region, usual...)
			return r
		}},
		{"in chunks", "MissingContentLength", func() *http.Request {
			r := put(s, "a", "a")
			authorize(s, r, KeyID, Region, usual...)
			r.ContentLength = -1
			return r
		}},
		{"POST", "MethodNotAllowed", func() *http.Request {
			r := put(s, "a", "a")
			r.Method = http.MethodPost
			authorize(s, r, KeyID, Region, usual...)
			return r
		}},
		{"another bucket", "NoSuchBucket", func() *http.Request {
			r := put(s, "a", "a")
			r.URL.Path = "/others/a"
			authorize(s, r, KeyID, Region, usual...)
			return r
		}},
		{"a long key", "KeyTooLongError", func() *http.Request {
			r := put(s, strings.Repeat("a", maxKey+1), "a")
			authorize(s, r, KeyID, Region, usual...)
			return r
		}},
		{"much metadata", "MetadataTooLarge", func() *http.Request {
			r := put(s, "a", "a")
			r.Header.Set("X-Amz-Meta-Profpull", strings.Repeat("a", maxMetadata))
			authorize(s, r, KeyID, Region, append(usual[:3:3], "x-amz-meta-profpull")...)
			return r
		}},
	} {
		before := len(s.Objects())
		resp, err := http.DefaultClient.Do(c.request())
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
	if err != nil {
		t.Fatal(err)
	}
	content := sum(nil)
	r.Header.Set("X-Amz-Date", "20130524T000000Z")
	r.Header.Set("X-Amz-Content-Sha256", content)
	a := authorization{date: "20130524", region: "us-east-1", signed: usual}
	if got := s.sign(r, a, content); got != "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7" {
		t.Errorf("signature %s", got)
	}
}
