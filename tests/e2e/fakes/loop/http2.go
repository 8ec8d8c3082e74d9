package loop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"time"
)

// Certificate is one for a host that is its own authority, and its PEM text.
func Certificate(host string) (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.ParseIP(host)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(text), err
}

// StartHTTP2 serves HTTP/2 alone on an address of its own. With TLS it returns the PEM text of the
// authority; without, a connection speaks HTTP/2 from its first byte on (prior knowledge).
func StartHTTP2(handler http.Handler, withTLS bool) (*Server, string, error) {
	host := Host()
	cert, authority, err := Certificate(host)
	if err != nil {
		return nil, "", err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{cert}}
	s, err := start(&Server{addr: host + ":0", handler: handler, tls: config, h2c: !withTLS})
	return s, authority, err
}

// plainListener takes connections without TLS for a server that speaks HTTP/2 only with it, as the
// one of the standard library does: both ends of the TLS are here.
type plainListener struct {
	net.Listener
	tls *tls.Config
}

func (l *plainListener) Accept() (net.Conn, error) {
	plain, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	client := tls.Client(near, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	go func() {
		// If the server has closed its end, the bytes that it has written are still to be read.
		if _, err := io.Copy(client, plain); !errors.Is(err, io.ErrClosedPipe) {
			_ = client.Close()
		}
	}()
	go func() {
		_, _ = io.Copy(plain, client)
		_ = plain.Close()
		_ = client.Close()
	}()
	return tls.Server(far, l.tls), nil
}
