//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// encrypted opens two hosts with certificates that encrypt what they send.
func encrypted(t testing.TB) *trial {
	t.Helper()
	secure := func(c *libvirt.Config) { c.TLS = true }
	return &trial{worldOf(t, libvirttest.Options{TLS: true}, accelerator(), secure)}
}

func TestWhatMovesIsEncrypted(t *testing.T) {
	testutil.Sample(t, 5)
	w := encrypted(t)
	vm := w.vm(traveller, restless)
	w.start(hosta, vm)
	for i, o := range []transferOptions{{Bandwidth: slow}, {Bandwidth: slow, Channels: 2},
		{Bandwidth: slow, PostCopy: true}} {
		j := jobID(fmt.Sprint("job ", i))
		w.moving(j, vm.ID, o)
		p := w.qmp(hosta, vm.ID, "query-migrate-parameters")
		if creds, _ := p["tls-creds"].(string); creds == "" {
			t.Errorf("with %+v QEMU has no credentials: %v", o, p)
		}
		w.cancelled(j, vm.ID)
	}
	w.begin("job", vm.ID, transferOptions{})
	w.arrives("job", vm.ID)
	w.ends(hostb, vm.ID)
}

// certificateDir has a host's libvirtd find its certificates elsewhere until the test
// ends.
func (w *trial) certificateDir(n name, dir string) {
	w.T.Helper()
	conf := w.Outside(string(n), "/etc/libvirt/qemu.conf")
	before, err := os.ReadFile(conf)
	if err != nil {
		w.T.Fatal(err)
	}
	set := func(text []byte) {
		if err := os.WriteFile(conf, text, 0o600); err != nil {
			w.T.Fatal(err)
		}
		w.KillDaemon(string(n))
		w.StartDaemon(string(n))
	}
	key := regexp.MustCompile(`(?m)^migrate_tls_x509_cert_dir = .*$`)
	set(key.ReplaceAll(before, []byte(`migrate_tls_x509_cert_dir = "`+dir+`"`)))
	w.T.Cleanup(func() { set(before) })
	w.Eventually(string(n)+" answers again", func() bool {
		_, err := w.hosts[n].Domains(w.T.Context())
		return err == nil
	})
}

// Credentials that do not fit end the job, with a reason. The VM runs on.
func TestCredentialsThatDoNotFitFailTheJob(t *testing.T) {
	foreign := t.TempDir()
	if err := selfSigned(foreign); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		on   name
		dir  string
	}{
		{"the target has those of another authority", hostb, foreign},
		{"the source has those of another authority", hosta, foreign},
		{"the target has none", hostb, t.TempDir()},
		{"the source has none", hosta, t.TempDir()},
	} {
		t.Run(row.name, func(t *testing.T) {
			testutil.Sample(t, 5)
			w := encrypted(t)
			vm := w.vm(traveller, calm)
			w.start(hosta, vm)
			w.certificateDir(row.on, row.dir)
			err := w.send("job", vm.ID, transferOptions{})
			if err == nil {
				p := w.Until(hosta, "job", hypervisor.JobFailed)
				if p.Error == "" {
					t.Error("it does not say why it failed")
				}
				t.Log(p.Error)
			} else if !errors.Is(err, hypervisor.Conflict) {
				t.Error(err)
			}
			w.stays("job", vm.ID)
			w.ends(hosta, vm.ID)
		})
	}
}

// selfSigned makes an authority, and a certificate of it, under the names that QEMU
// looks for.
func selfSigned(dir string) error {
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true,
		BasicConstraintsValid: true, Subject: pkix.Name{CommonName: "another CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageCertSign}
	leaf := *authority
	leaf.SerialNumber, leaf.IsCA, leaf.Subject.CommonName = big.NewInt(2), false, "hosta"
	leaf.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	leaf.DNSNames = []string{"hosta", "hostb"}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	root, errRoot := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	cert, errLeaf := x509.CreateCertificate(rand.Reader, &leaf, authority, &key.PublicKey, key)
	private, errKey := x509.MarshalPKCS8PrivateKey(key)
	err = errors.Join(errRoot, errLeaf, errKey)
	for file, block := range map[string]*pem.Block{
		"ca-cert.pem":     {Type: "CERTIFICATE", Bytes: root},
		"server-cert.pem": {Type: "CERTIFICATE", Bytes: cert},
		"client-cert.pem": {Type: "CERTIFICATE", Bytes: cert},
		"server-key.pem":  {Type: "PRIVATE KEY", Bytes: private},
		"client-key.pem":  {Type: "PRIVATE KEY", Bytes: private},
	} {
		text := pem.EncodeToMemory(block)
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), text, 0o600))
	}
	return err
}
