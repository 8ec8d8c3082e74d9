// Command connectref asks our query APIs with connect-go and the messages that Pyroscope publishes:
// each call over Connect, gRPC and gRPC-web, over HTTP/1.1 and HTTP/2, without and with TLS, in
// protobuf and in JSON, with and without compression. All answers of a call have to be the same
// message, or the same error, and some of what is in them is known.
package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"
	capabilitiesv1 "github.com/grafana/pyroscope/api/gen/proto/go/capabilities/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/capabilities/v1/capabilitiesv1connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	settingsv1 "github.com/grafana/pyroscope/api/gen/proto/go/settings/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/settings/v1/settingsv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	vcsv1 "github.com/grafana/pyroscope/api/gen/proto/go/vcs/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/vcs/v1/vcsv1connect"
	versionv1 "github.com/grafana/pyroscope/api/gen/proto/go/version/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/version/v1/versionv1connect"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

const (
	cpu   = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
	all   = `{service_name="vecdemo"}`
	start = int64(1795307340000)
	end   = int64(1795307460000)
)

// A form in which each call is made.
type form struct {
	name    string
	client  *http.Client
	options []connect.ClientOption
}

// forms is filled in by makeForms.
var forms []form

// makeForms lists the forms for a server without TLS (roots nil), or with it.
func makeForms(roots *x509.CertPool) {
	transport := func(http2 bool) *http.Client {
		t := &http.Transport{Protocols: new(http.Protocols)}
		if roots != nil {
			t.TLSClientConfig = &tls.Config{RootCAs: roots}
		}
		t.Protocols.SetHTTP1(!http2)
		t.Protocols.SetHTTP2(http2)
		t.Protocols.SetUnencryptedHTTP2(http2)
		return &http.Client{Transport: t}
	}
	http1, http2 := transport(false), transport(true)
	forms = nil
	for _, protocol := range []struct {
		name    string
		client  *http.Client
		options []connect.ClientOption
	}{
		{"Connect", http1, nil},
		{"Connect, HTTP/2", http2, nil},
		{"gRPC", http2, []connect.ClientOption{connect.WithGRPC()}},
		{"gRPC, HTTP/1.1", http1, []connect.ClientOption{connect.WithGRPC()}},
		{"gRPC-web", http1, []connect.ClientOption{connect.WithGRPCWeb()}},
		{"gRPC-web, HTTP/2", http2, []connect.ClientOption{connect.WithGRPCWeb()}},
	} {
		for _, codec := range []struct {
			name    string
			options []connect.ClientOption
		}{
			{"protobuf", nil},
			{"JSON", []connect.ClientOption{connect.WithProtoJSON()}},
			{"protobuf, gzip", []connect.ClientOption{connect.WithSendGzip()}},
			{"JSON, gzip", []connect.ClientOption{connect.WithProtoJSON(), connect.WithSendGzip()}},
		} {
			name := protocol.name + ", " + codec.name
			if roots != nil {
				name += ", TLS"
			}
			forms = append(forms, form{name, protocol.client, append(append([]connect.ClientOption{}, protocol.options...), codec.options...)})
		}
	}
}

var passed, failed int

func report(name string, problem string) {
	if problem == "" {
		passed++
		return
	}
	failed++
	fmt.Printf("FAIL %s: %s\n", name, problem)
}

// message is a pointer to a T that is a message.
type message[T any] interface {
	*T
	proto.Message
}

// ask makes a call in all forms. want is a part of the answer as text, or of the error.
func ask[C, Q, A any, M message[A]](name string, clients []C,
	call func(C, context.Context, *connect.Request[Q]) (*connect.Response[A], error), request *Q, want string) {
	var first M
	var firstText string
	for i, client := range clients {
		text := ""
		var answer M
		response, err := call(client, context.Background(), connect.NewRequest(request))
		if err != nil {
			text = fmt.Sprintf("error %s: %s", connect.CodeOf(err), err)
		} else {
			answer = response.Msg
			text = prototext.MarshalOptions{}.Format(answer)
		}
		text = strings.ReplaceAll(text, ":  ", ": ") // the text has random blanks
		problem := ""
		switch {
		case i == 0 && !strings.Contains(strings.ReplaceAll(text, "  ", " "), want):
			problem = fmt.Sprintf("got %s, expected %s in it", text, want)
		case i > 0 && (answer == nil) != (first == nil), i > 0 && answer == nil && text != firstText:
			problem = fmt.Sprintf("%s: got %s, before it %s", forms[i].name, text, firstText)
		case i > 0 && answer != nil && !proto.Equal(answer, first):
			problem = fmt.Sprintf("%s: got %s, before it %s", forms[i].name, text, firstText)
		}
		report(name+" in "+forms[i].name, problem)
		if i == 0 {
			first, firstText = answer, text
		}
	}
}

func clientsOf[C any](url string, make func(connect.HTTPClient, string, ...connect.ClientOption) C) []C {
	var clients []C
	for _, form := range forms {
		clients = append(clients, make(form.client, url, form.options...))
	}
	return clients
}

func askQuerier(url string) {
	c := clientsOf(url, querierv1connect.NewQuerierServiceClient)
	type client = querierv1connect.QuerierServiceClient
	nodes := int64(2)
	tooMany := int64(2000000)
	limit := int64(1)
	average := typesv1.TimeSeriesAggregationType_TIME_SERIES_AGGREGATION_TYPE_AVERAGE
	site := &typesv1.StackTraceSelector{CallSite: []*typesv1.Location{{Name: "main.main"}, {Name: "main.work"}}}
	stacks := func(change func(*querierv1.SelectMergeStacktracesRequest)) *querierv1.SelectMergeStacktracesRequest {
		r := &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: cpu, LabelSelector: all, Start: start, End: end}
		change(r)
		return r
	}
	series := func(change func(*querierv1.SelectSeriesRequest)) *querierv1.SelectSeriesRequest {
		r := &querierv1.SelectSeriesRequest{ProfileTypeID: cpu, LabelSelector: all, Start: start, End: end, Step: 15}
		change(r)
		return r
	}
	ask("ProfileTypes", c, client.ProfileTypes, &querierv1.ProfileTypesRequest{Start: start, End: end}, `ID:"`+cpu+`"`)
	ask("ProfileTypes of 1970", c, client.ProfileTypes, &querierv1.ProfileTypesRequest{Start: 1000, End: 4000}, "")
	ask("LabelNames", c, client.LabelNames, &typesv1.LabelNamesRequest{Matchers: []string{all}, Start: start, End: end}, `names:"pod"`)
	ask("LabelNames without a range", c, client.LabelNames, &typesv1.LabelNamesRequest{}, "missing time range in the query")
	ask("LabelNames, bad matcher", c, client.LabelNames, &typesv1.LabelNamesRequest{Matchers: []string{"{"}, Start: start, End: end}, "error invalid_argument")
	ask("LabelValues", c, client.LabelValues, &typesv1.LabelValuesRequest{Name: "pod", Start: start, End: end}, `names:"b"`)
	ask("Series", c, client.Series, &querierv1.SeriesRequest{LabelNames: []string{"service_name", "__profile_type__"}, Start: start, End: end}, `value:"vecdemo"`)
	ask("stacks", c, client.SelectMergeStacktraces, stacks(func(r *querierv1.SelectMergeStacktracesRequest) {}), "total:180000000")
	ask("stacks, two nodes", c, client.SelectMergeStacktraces, stacks(func(r *querierv1.SelectMergeStacktracesRequest) { r.MaxNodes = &nodes }), `names:"other"`)
	ask("stacks, too many nodes", c, client.SelectMergeStacktraces, stacks(func(r *querierv1.SelectMergeStacktracesRequest) { r.MaxNodes = &tooMany }), "greater than allowed 1048576")
	ask("stacks of a call site", c, client.SelectMergeStacktraces, stacks(func(r *querierv1.SelectMergeStacktracesRequest) { r.StackTraceSelector = site }), "flamegraph")
	ask("stacks of no profile", c, client.SelectMergeStacktraces, stacks(func(r *querierv1.SelectMergeStacktracesRequest) {
		r.ProfileIdSelector = []string{"734fd599-6865-419e-9475-932762d8f469"}
	}), `names:"total"`)
	ask("stacks of no span", c, client.SelectMergeStacktraces, stacks(func(r *querierv1.SelectMergeStacktracesRequest) { r.SpanSelector = []string{"9a517183f26a089d"} }), `names:"total"`)
	ask("stacks, a bad type", c, client.SelectMergeStacktraces, stacks(func(r *querierv1.SelectMergeStacktracesRequest) { r.ProfileTypeID = "<x>" }), `got(1): "<x>"`)
	for name, number := range querierv1.ProfileFormat_value {
		want := map[int32]string{2: "tree:", 3: "digraph", 4: "pprof:"}[number]
		ask("stacks as "+name, c, client.SelectMergeStacktraces, stacks(func(r *querierv1.SelectMergeStacktracesRequest) { r.Format = querierv1.ProfileFormat(number) }), want)
	}
	ask("span profile", c, client.SelectMergeSpanProfile, &querierv1.SelectMergeSpanProfileRequest{ProfileTypeID: cpu, LabelSelector: all, Start: start, End: end, SpanSelector: []string{"9a517183f26a089d"}}, `names:"total"`)
	ask("profile", c, client.SelectMergeProfile, &querierv1.SelectMergeProfileRequest{ProfileTypeID: cpu, LabelSelector: all, Start: start, End: end}, "period:1000000000")
	ask("profile of a call site for PGO", c, client.SelectMergeProfile, &querierv1.SelectMergeProfileRequest{ProfileTypeID: cpu, LabelSelector: all, Start: start, End: end, MaxNodes: &nodes,
		StackTraceSelector: &typesv1.StackTraceSelector{CallSite: site.CallSite, GoPgo: &typesv1.GoPGO{KeepLocations: 5, AggregateCallees: true}}}, "sample_type")
	ask("no profile", c, client.SelectMergeProfile, &querierv1.SelectMergeProfileRequest{ProfileTypeID: cpu, LabelSelector: `{pod="none"}`, Start: start, End: end}, "")
	ask("series", c, client.SelectSeries, series(func(r *querierv1.SelectSeriesRequest) {}), "timestamp:1795307400000")
	ask("series by pod with exemplars", c, client.SelectSeries, series(func(r *querierv1.SelectSeriesRequest) {
		r.GroupBy, r.Limit, r.Aggregation = []string{"pod"}, &limit, &average
		r.ExemplarType = typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL
	}), "exemplars:")
	ask("series without a step", c, client.SelectSeries, series(func(r *querierv1.SelectSeriesRequest) { r.Step = 0 }), "step must be >= 1ms")
	ask("heatmap", c, client.SelectHeatmap, &querierv1.SelectHeatmapRequest{ProfileTypeID: cpu, LabelSelector: all, Start: start, End: end, Step: 15, GroupBy: []string{"pod"},
		QueryType: querierv1.HeatmapQueryType_HEATMAP_QUERY_TYPE_INDIVIDUAL, ExemplarType: typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL, Limit: &limit}, "slots:")
	ask("diff", c, client.Diff, &querierv1.DiffRequest{Left: stacks(func(r *querierv1.SelectMergeStacktracesRequest) { r.LabelSelector = `{pod="a"}` }),
		Right: stacks(func(r *querierv1.SelectMergeStacktracesRequest) { r.LabelSelector = `{pod="b"}` })}, "leftTicks:50000000")
	ask("diff without a side", c, client.Diff, &querierv1.DiffRequest{}, "error invalid_argument")
	ask("stats", c, client.GetProfileStats, &typesv1.GetProfileStatsRequest{}, "data_ingested:true")
	ask("analyze", c, client.AnalyzeQuery, &querierv1.AnalyzeQueryRequest{Start: start, End: end, Query: cpu + all}, "")
}

func askServices(url string) {
	settings := clientsOf(url, settingsv1connect.NewSettingsServiceClient)
	type client = settingsv1connect.SettingsServiceClient
	setting := &settingsv1.Setting{Name: "pluginSettings", Value: `{"a":"<b>"}`, ModifiedAt: start}
	ask("settings, none", settings, client.Get, &settingsv1.GetSettingsRequest{}, "")
	ask("settings, set", settings, client.Set, &settingsv1.SetSettingsRequest{Setting: setting}, "modifiedAt:1795307340000")
	ask("settings, set too late", settings, client.Set, &settingsv1.SetSettingsRequest{Setting: &settingsv1.Setting{Name: "pluginSettings", ModifiedAt: 5}}, "error already_exists")
	ask("settings, get", settings, client.Get, &settingsv1.GetSettingsRequest{}, "pluginSettings")
	ask("settings, delete", settings, client.Delete, &settingsv1.DeleteSettingsRequest{Name: "pluginSettings"}, "")
	ask("flags", clientsOf(url, capabilitiesv1connect.NewFeatureFlagsServiceClient), capabilitiesv1connect.FeatureFlagsServiceClient.GetFeatureFlags,
		&capabilitiesv1.GetFeatureFlagsRequest{}, "v2StorageLayer")
	ask("version", clientsOf(url, versionv1connect.NewVersionClient), versionv1connect.VersionClient.Version, &versionv1.VersionRequest{}, "QuerierAPI:1")
	ask("no GitHub", clientsOf(url, vcsv1connect.NewVCSServiceClient), vcsv1connect.VCSServiceClient.GithubApp, &vcsv1.GithubAppRequest{}, "error unimplemented")
	ask("no rules", clientsOf(url, settingsv1connect.NewRecordingRulesServiceClient), settingsv1connect.RecordingRulesServiceClient.ListRecordingRules,
		&settingsv1.ListRecordingRulesRequest{}, "error unavailable")
}

// certificate writes a certificate for 127.0.0.1 and its key, and returns the roots that trust it.
func certificate(certFile, keyFile string) (*x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	if err := os.WriteFile(certFile, text, 0o600); err != nil {
		return nil, err
	}
	return roots, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), 0o600)
}

func run(server, profiles string, withTLS bool) error {
	directory, err := os.MkdirTemp("", "connectref")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	var args []string
	var roots *x509.CertPool
	scheme := "http"
	if withTLS {
		certFile, keyFile := filepath.Join(directory, "cert"), filepath.Join(directory, "key")
		if roots, err = certificate(certFile, keyFile); err != nil {
			return err
		}
		scheme = "https"
		args = append(args, "-tls", certFile, keyFile)
	}
	makeForms(roots)
	args = append(args, filepath.Join(directory, "store"))
	for _, name := range []string{"p1.pb", "p2.pb", "p3.pb"} {
		args = append(args, filepath.Join(profiles, name))
	}
	command := exec.Command(server, args...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	port, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		url := scheme + "://127.0.0.1:" + strings.TrimSpace(port)
		askQuerier(url)
		askServices(url)
	}
	stdin.Close()
	if ended := command.Wait(); ended != nil {
		return ended
	}
	return err
}

func main() {
	server := flag.String("server", "", "the program that serves the profiles")
	profiles := flag.String("profiles", "", "the directory of p1.pb, p2.pb and p3.pb")
	flag.Parse()
	for _, withTLS := range []bool{false, true} {
		if err := run(*server, *profiles, withTLS); err != nil {
			fmt.Printf("connect-diff: %s\n", err)
			os.Exit(1)
		}
	}
	fmt.Printf("connect-diff: %d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
