//go:build linux && libvirt_dlopen

package conn

import (
	"errors"
	"fmt"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// kinds says what may be done about each code of libvirt's. The kind is that of an
// act: for a look, Unknown becomes Transient. A code that is not listed is Unknown;
// the last rows are, too, and say why.
var kinds = map[libvirt.ErrorNumber]hypervisor.Kind{
	// What was asked for is not there.
	libvirt.ERR_NO_DOMAIN:            hypervisor.NotFound,
	libvirt.ERR_NO_DOMAIN_SNAPSHOT:   hypervisor.NotFound,
	libvirt.ERR_NO_DOMAIN_CHECKPOINT: hypervisor.NotFound,
	libvirt.ERR_NO_DOMAIN_BACKUP:     hypervisor.NotFound,
	libvirt.ERR_NO_DOMAIN_METADATA:   hypervisor.NotFound,
	libvirt.ERR_DEVICE_MISSING:       hypervisor.NotFound,
	libvirt.ERR_NO_STORAGE_POOL:      hypervisor.NotFound,
	libvirt.ERR_NO_STORAGE_VOL:       hypervisor.NotFound,
	libvirt.ERR_NO_NETWORK:           hypervisor.NotFound,
	libvirt.ERR_NO_SECRET:            hypervisor.NotFound,

	// libvirt checks these before it begins; another state would allow it.
	libvirt.ERR_OPERATION_INVALID:       hypervisor.Conflict,
	libvirt.ERR_DOM_EXIST:               hypervisor.Conflict,
	libvirt.ERR_STORAGE_VOL_EXIST:       hypervisor.Conflict,
	libvirt.ERR_NETWORK_EXIST:           hypervisor.Conflict,
	libvirt.ERR_RESOURCE_BUSY:           hypervisor.Conflict,
	libvirt.ERR_BLOCK_COPY_ACTIVE:       hypervisor.Conflict,
	libvirt.ERR_MIGRATE_UNSAFE:          hypervisor.Conflict, // a disk's cache mode, now
	libvirt.ERR_SNAPSHOT_REVERT_RISKY:   hypervisor.Conflict,
	libvirt.ERR_MULTIPLE_DOMAINS:        hypervisor.Conflict,
	libvirt.ERR_CHECKPOINT_INCONSISTENT: hypervisor.Conflict,
	libvirt.ERR_AGENT_UNRESPONSIVE:      hypervisor.Conflict, // before a command is sent
	libvirt.ERR_AGENT_UNSYNCED:          hypervisor.Conflict, // the same
	libvirt.ERR_NO_SECURITY_MODEL:       hypervisor.Conflict,
	libvirt.ERR_STORAGE_POOL_BUILT:      hypervisor.Conflict,
	libvirt.ERR_HOOK_SCRIPT_FAILED:      hypervisor.Conflict, // the host's own rules say no
	libvirt.ERR_INVALID_DOMAIN_SNAPSHOT: hypervisor.Conflict,
	libvirt.ERR_INVALID_ENCR_KEY_SECRET: hypervisor.Conflict,

	// This host will not learn it.
	libvirt.ERR_NO_SUPPORT:            hypervisor.Unsupported,
	libvirt.ERR_CONFIG_UNSUPPORTED:    hypervisor.Unsupported,
	libvirt.ERR_ARGUMENT_UNSUPPORTED:  hypervisor.Unsupported,
	libvirt.ERR_OPERATION_UNSUPPORTED: hypervisor.Unsupported,
	libvirt.ERR_CPU_INCOMPATIBLE:      hypervisor.Unsupported,
	libvirt.ERR_OS_TYPE:               hypervisor.Unsupported,

	// The arguments, or our rights, are wrong.
	libvirt.ERR_INVALID_ARG:        hypervisor.Invalid,
	libvirt.ERR_INVALID_DOMAIN:     hypervisor.Invalid,
	libvirt.ERR_INVALID_MAC:        hypervisor.Invalid,
	libvirt.ERR_XML_ERROR:          hypervisor.Invalid,
	libvirt.ERR_XML_DETAIL:         hypervisor.Invalid,
	libvirt.ERR_XML_INVALID_SCHEMA: hypervisor.Invalid,
	libvirt.ERR_OVERFLOW:           hypervisor.Invalid,
	libvirt.ERR_NO_NAME:            hypervisor.Invalid,
	libvirt.ERR_NO_OS:              hypervisor.Invalid,
	libvirt.ERR_NO_DEVICE:          hypervisor.Invalid,
	libvirt.ERR_CONF_SYNTAX:        hypervisor.Invalid,
	libvirt.ERR_AUTH_FAILED:        hypervisor.Invalid,
	libvirt.ERR_AUTH_CANCELLED:     hypervisor.Invalid,
	libvirt.ERR_AUTH_UNAVAILABLE:   hypervisor.Invalid,
	libvirt.ERR_ACCESS_DENIED:      hypervisor.Invalid,
	libvirt.ERR_OPERATION_DENIED:   hypervisor.Invalid,

	libvirt.ERR_NO_MEMORY: hypervisor.NoRoom,

	// It did not take effect: the lock of a domain's job was not to be had in time,
	// or there is nothing to talk to.
	libvirt.ERR_OPERATION_TIMEOUT: hypervisor.Transient,
	libvirt.ERR_NO_CONNECT:        hypervisor.Transient,
	libvirt.ERR_INVALID_CONN:      hypervisor.Transient,
	libvirt.ERR_UNKNOWN_HOST:      hypervisor.Transient,

	// The daemon was reached, but its answer was not, or did not say how far it
	// came.
	libvirt.ERR_RPC:                    hypervisor.Unknown,
	libvirt.ERR_SYSTEM_ERROR:           hypervisor.Unknown,
	libvirt.ERR_GNUTLS_ERROR:           hypervisor.Unknown,
	libvirt.ERR_SSH:                    hypervisor.Unknown,
	libvirt.ERR_LIBSSH:                 hypervisor.Unknown,
	libvirt.ERR_INTERNAL_ERROR:         hypervisor.Unknown, // also: the client's socket closed
	libvirt.ERR_OPERATION_FAILED:       hypervisor.Unknown, // of a migration; a name is taken
	libvirt.ERR_OPERATION_ABORTED:      hypervisor.Unknown,
	libvirt.ERR_MIGRATE_PERSIST_FAILED: hypervisor.Unknown, // it moved, but is not kept there
	libvirt.ERR_MIGRATE_FINISH_OK:      hypervisor.Unknown, // it moved, though the call failed
	libvirt.ERR_AGENT_COMMAND_TIMEOUT:  hypervisor.Unknown, // the guest may have done it
	libvirt.ERR_AGENT_COMMAND_FAILED:   hypervisor.Unknown,
}

// Classify returns the kind of an error of this package or of libvirt's. It goes by
// libvirt's code, never by a text. What is not classified is Unknown, as is nil.
func Classify(err error) hypervisor.Kind {
	if _, ours := errors.AsType[*hypervisor.Error](err); ours {
		return backend.KindOf(err)
	}
	e, ok := asLibvirt(err)
	if !ok {
		return hypervisor.Unknown
	}
	return kinds[e.Code]
}

// asLibvirt finds libvirt's own error in err.
func asLibvirt(err error) (libvirt.Error, bool) { return errors.AsType[libvirt.Error](err) }

// classify makes of libvirt's error one of ours. An error that is ours stays as it is.
func classify(op string, err error) error {
	if _, ours := errors.AsType[*hypervisor.Error](err); ours {
		return err
	}
	kind := Classify(err)
	if op != "" {
		return backend.Errorf(kind, "%s: %w", op, said{err})
	}
	return &hypervisor.Error{Kind: kind, Err: said{err}}
}

// said is an error of libvirt's in its own words, without its numbers.
type said struct{ err error }

func (s said) Error() string { return words(s.err) }
func (s said) Unwrap() error { return s.err }

// words returns what libvirt says of an error.
func words(err error) string {
	e, ok := err.(libvirt.Error)
	switch {
	case !ok:
		return err.Error()
	case e.Message == "":
		return fmt.Sprintf("libvirt's error %d without a message", e.Code)
	}
	return e.Message
}

// within says where an error happened.
func within(where string, err error) error {
	if e, ok := errors.AsType[*hypervisor.Error](err); ok {
		return backend.Errorf(e.Kind, "%s: %w", where, e.Err)
	}
	return backend.Errorf(hypervisor.Unknown, "%s: %w", where, err)
}

// observing makes of an error of something that has no effect one that may be
// repeated.
func observing(err error) error {
	e, ok := errors.AsType[*hypervisor.Error](err)
	if ok && e.Kind == hypervisor.Unknown {
		return &hypervisor.Error{Kind: hypervisor.Transient, Err: e.Err}
	}
	return err
}

// bare is what went wrong, without a kind.
func bare(err error) error {
	if e, ok := errors.AsType[*hypervisor.Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}
