package fake

import "github.com/godwit-vm/godwit/hypervisor"

// Encryption is how migrations are encrypted.
type Encryption string

// The encryptions.
const (
	Plain   Encryption = ""         // they are not
	TLSX509 Encryption = "tls-x509" // TLS with certificates
	TLSPSK  Encryption = "tls-psk"  // TLS with pre-shared keys
)

// EncryptionNamed returns the encryption of a name, none for "none" and "", and whether there is one.
func EncryptionNamed(name string) (Encryption, bool) {
	switch e := Encryption(name); e {
	case Plain, TLSX509, TLSPSK:
		return e, true
	case "none":
		return Plain, true
	}
	return Plain, false
}

// Speed returns how fast one connection is that is encrypted so, and how fast all connections of a
// small machine with two processors are; 0 is as without.
// Source: internal/predict (QEMU 7.2, tls-x509 over one connection and two; tls-psk over one).
func (e Encryption) Speed() (connection, all hypervisor.Bandwidth) {
	switch e {
	case TLSX509:
		return 300_000_000, 480_000_000
	case TLSPSK:
		return 100_000_000, 100_000_000
	}
	return 0, 0
}

// Encrypted returns the model of hosts that encrypt migrations: each connection is as fast as was
// measured. How fast several are together depends on the processors of the hosts, and is left as
// the model has it.
func (m Model) Encrypted(e Encryption) Model {
	if speed, _ := e.Speed(); speed > 0 && (m.PerChannel == 0 || speed < m.PerChannel) {
		m.PerChannel = speed
	}
	return m
}
