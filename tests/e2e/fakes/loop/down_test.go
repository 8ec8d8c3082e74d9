package loop

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A request that comes while the server goes away is cut before it is handled.
func TestClosedGate(t *testing.T) {
	handled := 0
	g := &gate{handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled++ })}
	ask := func() (cut any) {
		defer func() { cut = recover() }()
		g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil))
		return nil
	}
	if cut := ask(); cut != nil || handled != 1 {
		t.Errorf("open: %v, %d handled", cut, handled)
	}
	g.closed.Store(true)
	if cut := ask(); cut != http.ErrAbortHandler || handled != 1 {
		t.Errorf("closed: %v, %d handled", cut, handled)
	}
}
