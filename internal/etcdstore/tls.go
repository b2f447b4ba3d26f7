package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/godwit-vm/godwit/internal/pki"
)

// fromFiles makes a TLS configuration. Files that cannot be used are found now.
func (c Config) fromFiles() (*tls.Config, error) {
	made := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		roots, _, err := pki.Authorities(c.CA)
		if err != nil {
			return nil, fmt.Errorf("the CA's certificates: %w", err)
		}
		made.RootCAs = roots
	}
	if c.Cert == "" && c.Key == "" {
		return made, nil
	}
	if c.Cert == "" || c.Key == "" {
		return nil, errors.New("a certificate and its key are needed: only one of them is given")
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("the client's certificate %s: %w", c.Cert, err)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	made.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return load()
	}
	return made, nil
}

// shakeHands finds out whether TLS works: gRPC would try again and again, and say only
// that it took too long. It fails when every member that is there refuses.
func (c Config) shakeHands(ctx context.Context) error {
	if c.TLS == nil {
		return nil
	}
	refusals := make([]error, len(c.Endpoints))
	var all errgroup.Group
	for i, e := range c.Endpoints {
		all.Go(func() error {
			refusals[i] = c.shakeHand(ctx, e)
			return nil
		})
	}
	_ = all.Wait() // the errors are in refusals
	for _, err := range refusals {
		if err == nil {
			return nil
		}
	}
	return errors.Join(refusals...)
}

// preface is what a client of HTTP/2 says first; the server answers unless it has refused
// the client's certificate.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// shakeHand returns what is wrong with TLS at an endpoint; nil also when no server is there.
func (c Config) shakeHand(ctx context.Context, endpoint string) error {
	address := strings.TrimPrefix(endpoint, "https://")
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil // gRPC tells, if all of them are away
	}
	defer func() { _ = raw.Close() }() // nothing was written that matters
	if until, limited := ctx.Deadline(); limited {
		_ = raw.SetDeadline(until) // else it waits for as long as the server
	}
	config := c.TLS.Clone()
	config.NextProtos = []string{"h2"}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	conn := tls.Client(raw, config)
	err = conn.HandshakeContext(ctx)
	if err == nil {
		_, err = conn.Write([]byte(preface))
	}
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return explained(endpoint, err)
}

// explained says what an error of TLS means for an operator.
func explained(endpoint string, err error) error {
	if err == nil {
		return nil
	}
	why := "TLS does not work: does it speak TLS, and the same versions?"
	if _, bad := errors.AsType[*tls.CertificateVerificationError](err); bad {
		why = "its certificate is not to be trusted: check the CA's certificates and the " +
			"host name"
	} else if e, told := errors.AsType[*net.OpError](err); told && e.Op == "remote error" {
		why = "it refuses this client: check the client's certificate and key"
	} else if slow, late := errors.AsType[net.Error](err); late && slow.Timeout() {
		return nil // it is stopped, or far away: that says nothing about TLS
	}
	return fmt.Errorf("etcd at %s: %s: %w", endpoint, why, err)
}
