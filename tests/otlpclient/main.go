// Command otlpclient sends profiles as OTLP with the messages and the client that OpenTelemetry publishes, to a
// profpull directly and through a Collector, and compares what its store has with what was sent: totals by
// type, and by type and function.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/google/pprof/profile"
	collector "go.opentelemetry.io/proto/otlp/collector/profiles/v1development"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/protobuf/proto"
)

const frames = 40

// sums are totals by type, and by type and function at the leaf ("cpu work").
type sums map[string]int64

func (s sums) add(name, function string, value int64) {
	s[name] += value
	s[name+" "+function] += value
}

// made is the same profile as OTLP and as pprof.
type made struct {
	request *collector.ExportProfilesServiceRequest
	pprof   *profile.Profile
	sums    sums
}

// makeProfile makes 200 random stacks with a time of the CPU, and with bytes that were allocated.
func makeProfile(r *rand.Rand, service string) made {
	d := &otlp.ProfilesDictionary{StringTable: []string{""}}
	text := func(s string) int32 {
		d.StringTable = append(d.StringTable, s)
		return int32(len(d.StringTable) - 1)
	}
	cpu := &otlp.ValueType{TypeStrindex: text("cpu"), UnitStrindex: text("nanoseconds")}
	space := &otlp.ValueType{TypeStrindex: text("alloc_space"), UnitStrindex: text("bytes")}
	d.MappingTable = []*otlp.Mapping{{}}
	d.FunctionTable = []*otlp.Function{{}}
	d.LocationTable = []*otlp.Location{{}}
	d.LinkTable = []*otlp.Link{{}}
	d.AttributeTable = []*otlp.KeyValueAndUnit{{}}
	d.StackTable = []*otlp.Stack{{}}
	m := made{sums: sums{}, pprof: &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 10_000_000}}
	now := time.Now()
	m.pprof.TimeNanos = now.UnixNano()
	m.pprof.DurationNanos = int64(10 * time.Second)
	for i := int32(1); i <= frames; i++ {
		name := fmt.Sprintf("shop.function%d", i)
		d.FunctionTable = append(d.FunctionTable, &otlp.Function{NameStrindex: text(name), FilenameStrindex: text(name + ".go")})
		d.LocationTable = append(d.LocationTable, &otlp.Location{Lines: []*otlp.Line{{FunctionIndex: i, Line: int64(i)}}})
		f := &profile.Function{ID: uint64(i), Name: name, Filename: name + ".go"}
		m.pprof.Function = append(m.pprof.Function, f)
		m.pprof.Location = append(m.pprof.Location, &profile.Location{ID: uint64(i), Line: []profile.Line{{Function: f, Line: int64(i)}}})
	}
	at := uint64(now.UnixNano())
	times := &otlp.Profile{SampleType: cpu, PeriodType: cpu, Period: 10_000_000, TimeUnixNano: at, DurationNano: 10e9}
	bytes := &otlp.Profile{SampleType: space, PeriodType: space, Period: 512 << 10, TimeUnixNano: at, DurationNano: 10e9}
	for i := 0; i < 200; i++ {
		stack := &otlp.Stack{}
		sample := &profile.Sample{Value: []int64{1 + r.Int63n(1e9)}}
		for k := 0; k < 1+r.Intn(20); k++ {
			location := int32(1 + r.Intn(frames))
			stack.LocationIndices = append(stack.LocationIndices, location)
			sample.Location = append(sample.Location, m.pprof.Location[location-1])
		}
		d.StackTable = append(d.StackTable, stack)
		index := int32(len(d.StackTable) - 1)
		leaf := m.pprof.Function[stack.LocationIndices[0]-1].Name
		size := 1 + r.Int63n(1e6)
		times.Samples = append(times.Samples, &otlp.Sample{StackIndex: index, Values: sample.Value})
		bytes.Samples = append(bytes.Samples, &otlp.Sample{StackIndex: index, Values: []int64{size}})
		m.pprof.Sample = append(m.pprof.Sample, sample)
		m.sums.add("cpu", leaf, sample.Value[0])
		m.sums.add("alloc_space", leaf, size)
	}
	value := &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: service}}
	m.request = &collector.ExportProfilesServiceRequest{Dictionary: d, ResourceProfiles: []*otlp.ResourceProfiles{{
		Resource:      &resource.Resource{Attributes: []*common.KeyValue{{Key: "service.name", Value: value}}},
		ScopeProfiles: []*otlp.ScopeProfiles{{Profiles: []*otlp.Profile{times, bytes}}}}}}
	return m
}

// ---- senders ------------------------------------------------------------------------------------

type sender func(m *made, service string) error

func overGRPC(address string, secure credentials.TransportCredentials, options ...grpc.CallOption) sender {
	return func(m *made, service string) error {
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(secure))
		if err != nil {
			return err
		}
		defer connection.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		answer, err := collector.NewProfilesServiceClient(connection).Export(ctx, m.request, append(options, grpc.WaitForReady(true))...)
		if err == nil && answer.GetPartialSuccess().GetRejectedProfiles() != 0 {
			err = fmt.Errorf("%v", answer)
		}
		return err
	}
}

func post(client *http.Client, address, media string, body []byte) error {
	answer, err := client.Post(address, media, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%d %s", answer.StatusCode, text)
	}
	return err
}

func overHTTP(address string, client *http.Client) sender {
	return func(m *made, service string) error {
		body, err := proto.Marshal(m.request)
		if err != nil {
			return err
		}
		return post(client, address+"/v1development/profiles", "application/x-protobuf", body)
	}
}

// asPprof sends the profile to a profpull that writes OTLP.
func asPprof(address string) sender {
	return func(m *made, service string) error {
		var body bytes.Buffer
		if err := m.pprof.Write(&body); err != nil {
			return err
		}
		for name := range m.sums {
			if name[:3] != "cpu" {
				delete(m.sums, name)
			}
		}
		return post(http.DefaultClient, address+"/v1/pprof?service_name="+service, "application/octet-stream", body.Bytes())
	}
}

// ---- the store ----------------------------------------------------------------------------------

func get(address string) ([]byte, error) {
	answer, err := http.Get(address)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", address, answer.StatusCode, body)
	}
	return body, err
}

// stored reads all that the store has of a service.
func stored(query, service string) (sums, error) {
	of := url.Values{"service": {service}, "from": {"now-1h"}, "until": {"now"}}
	body, err := get(query + "/api/v1/types?" + of.Encode())
	if err != nil {
		return nil, err
	}
	var list struct{ Types []struct{ ID string } }
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("%w: %s", err, body)
	}
	s := sums{}
	for _, t := range list.Types {
		of.Set("type", t.ID)
		if body, err = get(query + "/api/v1/pprof?" + of.Encode()); err != nil {
			return nil, err
		}
		p, err := profile.ParseData(body)
		if err != nil {
			return nil, err
		}
		for _, sample := range p.Sample {
			for i, kind := range p.SampleType {
				s.add(kind.Type, sample.Location[0].Line[0].Function.Name, sample.Value[i])
			}
		}
	}
	return s, nil
}

func compare(sent, got sums) string {
	for name, want := range sent {
		if got[name] != want {
			return fmt.Sprintf("%s: %d, expected %d", name, got[name], want)
		}
	}
	if len(got) != len(sent) {
		return fmt.Sprintf("%d sums, expected %d", len(got), len(sent))
	}
	return ""
}

// check sends a profile, and waits until the store has it.
func check(send sender, m *made, service, query string) string {
	if err := send(m, service); err != nil {
		return err.Error()
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		got, err := stored(query, service)
		if err != nil {
			return err.Error()
		}
		if text := compare(m.sums, got); text == "" || time.Now().After(end) {
			return text
		}
	}
}

func main() {
	plain := flag.String("plain", "", "address of profpull's receive server")
	query := flag.String("query", "", "URL of its query server")
	secure := flag.String("tls", "", "address of a receive server with TLS")
	secureQuery := flag.String("tls-query", "", "URL of the query server of its process")
	authority := flag.String("ca", "", "file with its certificate")
	byGRPC := flag.String("collector-grpc", "", "address of a Collector's receiver, whose profiles go to the first server over gRPC")
	byHTTP := flag.String("collector-http", "", "likewise, over HTTP")
	through := flag.String("profpull", "", "URL of a profpull that sends to a Collector, which sends to the first server")
	flag.Parse()
	pem, err := os.ReadFile(*authority)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	trusted := &tls.Config{RootCAs: x509.NewCertPool()}
	trusted.RootCAs.AppendCertsFromPEM(pem)
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	none := insecure.NewCredentials()
	type run struct {
		name, service, query string
		send                 sender
	}
	runs := []run{
		{"the generated client, gRPC without TLS", "grpc-plain", *query, overGRPC(*plain, none)},
		{"the generated client, gRPC with gzip", "grpc-gzip", *query, overGRPC(*plain, none, grpc.UseCompressor("gzip"))},
		{"the generated client, gRPC over TLS", "grpc-tls", *secureQuery, overGRPC(*secure, credentials.NewTLS(trusted))},
		{"HTTP/1.1", "http-1", *query, overHTTP("http://"+*plain, http.DefaultClient)},
		{"HTTP/2 without TLS", "http-2", *query, overHTTP("http://"+*plain, &http.Client{Transport: &http.Transport{Protocols: &h2c}})},
		{"HTTP over TLS", "http-tls", *secureQuery, overHTTP("https://"+*secure, &http.Client{Transport: &http.Transport{TLSClientConfig: trusted, ForceAttemptHTTP2: true}})},
	}
	if *byGRPC != "" {
		runs = append(runs, run{"the Collector, over gRPC", "collector-grpc", *query, overGRPC(*byGRPC, none)},
			run{"the Collector, over HTTP", "collector-http", *query, overGRPC(*byHTTP, none)},
			run{"profpull to the Collector, and back", "round-trip", *query, asPprof(*through)})
	}
	failed := 0
	for i, r := range runs {
		m := makeProfile(rand.New(rand.NewSource(int64(i)+1)), r.service)
		if text := check(r.send, &m, r.service, r.query); text != "" {
			failed++
			fmt.Printf("FAIL %s: %s\n", r.name, text)
			continue
		}
		fmt.Printf("ok   %s: cpu %d, alloc_space %d, %d sums of functions\n", r.name, m.sums["cpu"], m.sums["alloc_space"], len(m.sums))
	}
	fmt.Printf("check-otlp: %d passed, %d failed\n", len(runs)-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
