package daemon_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/daemon"
)

// certificate returns one that ends then, as a file has it.
func certificate(t *testing.T, end time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestCertificatesAreMeasured: the first end of each file, also after it was replaced; what is no
// certificate, or not there, is not told.
func TestCertificatesAreMeasured(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, second := time.Unix(2_000_000_000, 0), time.Unix(2_100_000_000, 0)
	write("ca-cert.pem", append(certificate(t, second), certificate(t, first)...))
	write("server-cert.pem", []byte("nothing"))
	etcd := filepath.Join(dir, "etcd.pem")
	write("etcd.pem", certificate(t, first))
	set := daemon.NewMetrics(daemon.CertificatesOf(daemon.HostConfig{TLS: dir}, daemon.TLS{Cert: etcd}))
	line := func(name string, end time.Time) string {
		return fmt.Sprintf("godwit_certificate_not_after_timestamp_seconds{file=%q} %v",
			filepath.Join(dir, name), float64(end.Unix()))
	}
	text := scrape(t, set)
	has(t, text, line("ca-cert.pem", first), line("etcd.pem", first))
	if n := strings.Count(text, "\ngodwit_certificate"); n != 2 {
		t.Errorf("%d files are told", n)
	}
	write("etcd.pem", certificate(t, second))
	has(t, scrape(t, set), line("etcd.pem", second))
	if c := daemon.CertificatesOf(daemon.HostConfig{TLS: dir, TLSPSK: true}, daemon.TLS{}); len(c) > 0 {
		t.Errorf("with a shared key there are certificates: %v", c)
	}
}
