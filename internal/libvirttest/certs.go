//go:build linux

package libvirttest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/internal/pki"
)

// certificates makes, once, a directory with certificates under the names that
// QEMU looks for, and those that libvirt's clients look for.
var certificates = sync.OnceValues(func() (string, error) {
	dir, err := makeCertificates(filepath.Join(world.root, "tls"))
	if err != nil {
		return "", fmt.Errorf("make certificates: %w", err)
	}
	return dir, nil
})

func makeCertificates(dir string) (string, error) {
	now, lasts := time.Now(), 365*24*time.Hour
	a, err := pki.Init(dir, "lab CA", lasts, now)
	if err != nil {
		return "", err
	}
	r := pki.Request{Name: "localhost", DNS: []string{HostA, HostB}, Lasts: lasts}
	for _, address := range []string{"127.0.0.1", "10.99.0.1", "10.99.0.2"} {
		r.IPs = append(r.IPs, net.ParseIP(address))
	}
	host, err := a.Issue(r, now)
	return host, errors.Join(err, os.Symlink("ca-cert.pem", filepath.Join(host, "cacert.pem")),
		os.Symlink("client-cert.pem", filepath.Join(host, "clientcert.pem")),
		os.Symlink("client-key.pem", filepath.Join(host, "clientkey.pem")))
}
