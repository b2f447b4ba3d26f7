package daemon

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// descCertificate is when the first certificate in a file ends.
var descCertificate = gauge("certificate_not_after_timestamp_seconds",
	"When the first of the certificates in a file ends. A file without any has no series.", "file")

// Certificates measures until when certificates are valid. It reads the files when it is asked, as
// they are renewed in place. It is a Prometheus collector.
type Certificates []string

// CertificatesOf returns the files of a host's migrations, of connections to the store and, of a
// controller that serves it, of that.
func CertificatesOf(h HostConfig, files TLS) (c Certificates) {
	names := []string{"ca-cert.pem", "server-cert.pem", "client-cert.pem"}
	if h.TLS != "" && !h.TLSPSK {
		for _, name := range names {
			c = append(c, filepath.Join(h.TLS, name))
		}
	} else if files.Dir != "" {
		for _, name := range names {
			if path := filepath.Join(files.Dir, name); !notAfter(path).IsZero() {
				c = append(c, path)
			}
		}
	}
	for _, file := range []string{files.CA, files.Cert} {
		if file != "" {
			c = append(c, file)
		}
	}
	return c
}

// Describe implements prometheus.Collector.
func (c Certificates) Describe(to chan<- *prometheus.Desc) { to <- descCertificate }

// Collect implements prometheus.Collector.
func (c Certificates) Collect(to chan<- prometheus.Metric) {
	for _, file := range c {
		if end := notAfter(file); !end.IsZero() {
			send(to, descCertificate, seconds(end), file)
		}
	}
}

// notAfter returns when the first certificate in a file ends; zero when there is none that can be
// read.
func notAfter(file string) (first time.Time) {
	text, err := os.ReadFile(file)
	if err != nil {
		return first
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return first
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if block.Type == "CERTIFICATE" && err == nil && (first.IsZero() || c.NotAfter.Before(first)) {
			first = c.NotAfter
		}
	}
}
