package target

import (
	"fmt"
	"net"
	"net/http"
)

// Many are targets with one listener for all, each at another address: thousands of listeners take
// the descriptors that connections need. For benchmarks.
type Many struct {
	Addrs   []string
	targets map[string]*Target // by host
	server  *http.Server
}

// StartMany runs n targets with the options of each.
func StartMany(n int, options func(i int) Options) (*Many, error) {
	// 127.0.0.0/8 as a whole has no name but this one.
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		return nil, err
	}
	m := &Many{targets: map[string]*Target{}}
	port := listener.Addr().(*net.TCPAddr).Port
	for i := 0; i < n; i++ {
		host := fmt.Sprintf("127.%d.%d.%d", 220+i/62500%30, i/250%250, i%250+1)
		m.targets[host] = newTarget(options(i))
		m.Addrs = append(m.Addrs, fmt.Sprintf("%s:%d", host, port))
	}
	m.server = &http.Server{Handler: m}
	go func() { _ = m.server.Serve(listener) }()
	return m, nil
}

// ServeHTTP hands the request to the target whose address was asked.
func (m *Many) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if t := m.targets[local.IP.String()]; t != nil {
		t.ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}

// Served counts the answers of all.
func (m *Many) Served() (n int64) {
	for _, t := range m.targets {
		n += t.Served()
	}
	return n
}
