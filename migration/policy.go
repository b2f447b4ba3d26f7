package migration

// Labels are names and values that selectors match.
type Labels = map[string]string

// A Policy gives the VMs that it selects other options than the cluster's.
// Source: KubeVirt v1.9.0 api/migrations/v1alpha1/types.go:43
// (MigrationPolicySpec).
type Policy struct {
	// Name tells policies apart; the smaller one wins a tie. Of two policies
	// with one name the first in the list wins, which [OverlappingPolicies] reports.
	Name string
	// Selectors say which VMs; nil is none.
	Selectors *Selectors
	OptionsOverrides
}

// Selectors say which VMs a policy is for: all labels must be there, with
// exactly these values. A selector without labels, nil or empty, asks nothing;
// two such selectors match every VM.
type Selectors struct {
	VM        Labels // on the VM itself
	Namespace Labels // on the namespace of the VM
}

// Compression says how memory is compressed on the wire, in KubeVirt's words.
type Compression string

// The compressions. The empty word is none, too.
const (
	CompressionNone Compression = "none"
	CompressionZstd Compression = "zstd"
)

// On reports whether memory is compressed. An unknown word is off.
// Source: KubeVirt v1.9.0 virtwrap/live-migration-source.go:135 (flags).
func (c Compression) On() bool { return c == CompressionZstd }
