package config

import (
	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// Transport is how migrations cross the network.
type Transport struct {
	// Encryption is none (default), tls-x509 (certificates) or tls-psk (keys).
	Encryption string `yaml:"encryption,omitempty"`
	// Connections is how many one migration takes. Default: 8, as agents ask for.
	Connections *int `yaml:"connections,omitempty"`
}

// transport reads how migrations cross the network.
func (r *reader) transport(s *Scenario) {
	spec := &r.spec.Transport
	var known bool
	if s.Encryption, known = fake.EncryptionNamed(spec.Encryption); !known {
		r.wrong("transport.encryption", "unknown encryption %q; use none, tls-x509 or tls-psk",
			spec.Encryption)
	}
	if n := spec.Connections; n != nil {
		if *n < 1 || *n > agent.MaxConnections {
			r.wrong("transport.connections", "needs 1 to %d, has %d", agent.MaxConnections, *n)
			return
		}
		s.Agent.Connections = *n
	}
}
