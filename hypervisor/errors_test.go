package hypervisor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
)

func TestErrorSaysEverything(t *testing.T) {
	tests := []struct {
		name string
		err  hypervisor.Error
		want string
	}{
		{"operation, VM, host, kind and cause",
			hypervisor.Error{Op: "Migrate", Host: "n1", VM: "default/web",
				Kind: hypervisor.Transient, Err: errors.New("connection refused")},
			"Migrate default/web on n1: transient: connection refused"},
		{"an operation on a host is about no VM",
			hypervisor.Error{Op: "Domains", Host: "n1", Kind: hypervisor.Unsupported,
				Err: errors.New("too old")},
			"Domains on n1: unsupported: too old"},
		{"without a host it says the VM",
			hypervisor.Error{Op: "Do", VM: "default/web", Kind: hypervisor.NotFound,
				Err: errors.New("no such domain")},
			"Do default/web: not found: no such domain"},
		{"without a cause the kind is the last word",
			hypervisor.Error{Op: "Receive", Host: "n2", VM: "default/web",
				Kind: hypervisor.NoRoom},
			"Receive default/web on n2: no room"},
		{"what is not classified has an unknown outcome",
			hypervisor.Error{Op: "Do", Err: io.ErrUnexpectedEOF},
			"Do: unknown outcome: unexpected EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.err.Error(); got != tt.want {
				t.Errorf("Error() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestErrorsAreFoundByKind(t *testing.T) {
	for kind := hypervisor.Unknown; kind <= hypervisor.NoRoom; kind++ {
		err := fmt.Errorf("agent: %w", &hypervisor.Error{Op: "Do", Kind: kind, Err: io.EOF})
		for other := hypervisor.Unknown; other <= hypervisor.NoRoom; other++ {
			if got := errors.Is(err, other); got != (kind == other) {
				t.Errorf("%v is %v: %t", err, other, got)
			}
		}
	}
}

func TestErrorsAreFoundByCause(t *testing.T) {
	cause := fmt.Errorf("dial: %w", context.DeadlineExceeded)
	err := &hypervisor.Error{Op: "Progress", Kind: hypervisor.Unknown, Err: cause}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error("the cause is not found")
	}
	if errors.Is(err, context.Canceled) {
		t.Error("a cause is found that is not there")
	}
	if errors.Unwrap(err) != cause {
		t.Errorf("Unwrap() = %v, want the backend's own error", errors.Unwrap(err))
	}
	if bare := (&hypervisor.Error{Op: "Progress"}).Unwrap(); bare != nil {
		t.Errorf("without a cause, Unwrap() = %v", bare)
	}
}

// unlike is an error that cannot be compared with ==.
type unlike struct{ words []string }

func (u unlike) Error() string { return fmt.Sprint(u.words) }

func TestErrorsAreComparedWithAnything(t *testing.T) {
	err := &hypervisor.Error{Op: "Do", Kind: hypervisor.Conflict}
	for _, target := range []error{nil, io.EOF, unlike{[]string{"a"}},
		&hypervisor.Error{Op: "Do", Kind: hypervisor.Conflict}} {
		if err.Is(target) {
			t.Errorf("%v is %v", err, target)
		}
	}
}

// A caller decides by the kind, never by the text.
func ExampleError() {
	var err error = &hypervisor.Error{Op: "Migrate", Host: "n1", VM: "default/web",
		Kind: hypervisor.Transient, Err: errors.New("connection refused")}
	fmt.Println(err)
	switch {
	case errors.Is(err, hypervisor.Transient):
		fmt.Println("it did not take effect: try again later")
	case errors.Is(err, hypervisor.Unknown):
		fmt.Println("it may have taken effect: observe first")
	}
	// Output:
	// Migrate default/web on n1: transient: connection refused
	// it did not take effect: try again later
}
