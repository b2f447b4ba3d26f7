package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// fleetReader builds a fleet from objects, one after another. Hosts and VMs are
// kept until the end: CPUs depend on the configuration, and which VMs must be apart
// from which others on all VMs.
type fleetReader struct {
	*inventory.Builder
	defaults inventory.Defaults
	objects  int
	hosts    []kubevirtHost
	vms      []vm
	moves    []move
	clusters int     // KubeVirt objects
	cpuRatio int     // virtual CPUs for each CPU
	unit     int64   // so many units of a host's CPUs are one virtual CPU that shares
	ratio    float64 // by how much overheads are multiplied; 0 and 1 are not
	percent  int64   // how many percent of what its pod requests a guest has
	cpuAsk   int64   // what pods request that say nothing, in thousandths; 0 is by ratio
	quotas   []resourceQuota
	cores    []placement.CPUSet // one CPU each, shared by all nodes
	apart    affinities
	pods     pods
}

// An object is one that is being read.
type object struct {
	*fleetReader
	line    int
	text    []byte            // as JSON
	source  Piece             // as it was written
	doc     *yamldoc.Document // of the source; nil until a line is asked for
	subject string            // "VirtualMachineInstance prod/db"
	kind    string
	id      hypervisor.VMID // namespace/name
}

// header is what all objects begin with.
type header struct {
	APIVersion string                           `json:"apiVersion"`
	Kind       string                           `json:"kind"`
	Metadata   struct{ Namespace, Name string } `json:"metadata"`
	Items      []json.RawMessage                `json:"items"`
}

func newReader(name string, d inventory.Defaults) *fleetReader {
	return &fleetReader{
		Builder:  inventory.NewBuilder(name),
		defaults: d,
		cpuRatio: defaultCPURatio,
		percent:  100,
	}
}

// object reads one piece of the input.
func (f *fleetReader) object(p Piece) error {
	f.objects++
	if f.objects > maxObjects {
		f.Errorf(p.Line, "", "there are more than %d objects", maxObjects)
		return errEnough
	}
	o := &object{fleetReader: f, line: p.Line, source: p, text: p.Text}
	if !p.JSON {
		doc, err := yamldoc.Parse(f.File, p.Line, p.Text)
		if err == nil {
			o.doc = doc
			o.text, err = doc.JSON()
		}
		if err != nil {
			f.adopt(err)
			return f.enough()
		}
	}
	o.read()
	return f.enough()
}

// adopt takes problems over that another reader found.
func (f *fleetReader) adopt(err error) {
	if problems, is := errors.AsType[yamldoc.Problems](err); is {
		for _, p := range problems {
			f.Errorf(p.Line, p.Field, "%s", p.Message)
		}
	}
}

func (f *fleetReader) enough() error {
	if f.Full() {
		return errEnough
	}
	return nil
}

// read decodes the object and adds what it describes to the fleet.
func (o *object) read() {
	if hasHugeExponent(o.text) {
		o.errorf("", "it has a number with an exponent of three digits or more")
		return
	}
	if string(o.text) == "null" {
		return
	}
	var h header
	if !o.decode(&h) {
		return
	}
	o.kind = h.Kind
	o.id = hypervisor.VMID(h.Metadata.Namespace + "/" + h.Metadata.Name)
	o.subject = strings.TrimSpace(h.Kind + " " + strings.TrimPrefix(string(o.id), "/"))
	group, _, _ := strings.Cut(h.APIVersion, "/")
	switch {
	case strings.HasSuffix(h.Kind, "List"):
		o.list(h.Items)
	case o.source.Rest && h.Kind == "" && !o.source.JSON: // JSON that is cut off has no end
		o.Errorf(o.source.End, "", "the list has items and no kind, which kubectl prints after "+
			"them: is it cut off?")
	case o.source.Rest:
	case h.Kind == "":
		o.errorf("kind", "it has no kind; print objects with kubectl get -o json or -o yaml")
	case h.APIVersion == "v1" && h.Kind == "Node":
		into(o, (*object).node)
	case h.APIVersion == "v1" && h.Kind == "Namespace":
		into(o, (*object).namespace)
	case h.APIVersion == "v1" && h.Kind == "Pod":
		into(o, (*object).ofNode)
	case h.APIVersion == "v1" && h.Kind == "ResourceQuota":
		into(o, (*object).quota)
	case group == "kubevirt.io" && h.Kind == "VirtualMachineInstance":
		into(o, (*object).instance)
	case group == "kubevirt.io" && h.Kind == "VirtualMachineInstanceMigration":
		into(o, (*object).migration)
	case group == "kubevirt.io" && h.Kind == "KubeVirt":
		into(o, (*object).cluster)
	case group == "migrations.kubevirt.io" && h.Kind == "MigrationPolicy":
		into(o, (*object).policy)
	default:
		o.warnf("", "objects of the kind %s %s are left out", h.APIVersion, h.Kind)
	}
}

// list reads a list that was not taken apart, since it is in flow style.
func (o *object) list(items []json.RawMessage) {
	for i, text := range items {
		line := o.lineOf(fmt.Sprintf("items[%d]", i))
		inner := &object{
			fleetReader: o.fleetReader, line: line, text: text,
			source: Piece{Line: line, Text: text, JSON: true},
		}
		var h header
		if !inner.decode(&h) {
			continue
		}
		if strings.HasSuffix(h.Kind, "List") {
			inner.errorf("kind", "a list is in a list")
			continue
		}
		inner.read()
	}
}

// apiObject is an object that this package reads.
type apiObject interface {
	kubeobject.Node | kubeobject.Namespace | kubeobject.Pod | kubeobject.ResourceQuota | kubeobject.VirtualMachineInstance | kubeobject.KubeVirt |
		kubeobject.VirtualMachineInstanceMigration | kubeobject.MigrationPolicy
}

// into decodes o and hands it on.
func into[T apiObject](o *object, use func(*object, *T)) {
	if strings.TrimPrefix(string(o.id), "/") == "" || strings.HasSuffix(string(o.id), "/") {
		o.errorf("metadata.name", "it has no name")
		return
	}
	v := new(T)
	if o.decode(v) {
		use(o, v)
	}
}

// decode decodes o; it reports why it cannot.
func (o *object) decode(v any) bool {
	err := json.Unmarshal(o.text, v)
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		o.errorf(wrong.Field, "needs %s, has %s", wrong.Type, wrong.Value)
		return false
	}
	if wrong, is := errors.AsType[*json.SyntaxError](err); is {
		end := min(int(wrong.Offset), len(o.text))
		o.Errorf(o.line+bytes.Count(o.text[:end], []byte{'\n'}), o.subject, "%v", err)
		return false
	}
	if err != nil {
		o.errorf("", "%v", err)
	}
	return err == nil
}

// errorf reports a problem of a field, such as "spec.domain".
func (o *object) errorf(field, format string, args ...any) {
	line := o.line
	if !o.Full() {
		line = o.lineOf(field)
	}
	o.Errorf(line, o.field(field), format, args...)
}

// warnf warns of a field. Warnings are many, so the line is the object's.
func (o *object) warnf(field, format string, args ...any) {
	o.Warnf(o.line, o.field(field), format, args...)
}

func (o *object) field(field string) string { return strings.TrimSpace(o.subject + " " + field) }

// lineOf returns the line of a field.
func (o *object) lineOf(field string) int {
	if o.doc == nil {
		doc, err := yamldoc.Parse(o.File, o.line, o.source.Text)
		if err != nil {
			return o.line
		}
		o.doc = doc
	}
	return max(o.line, o.doc.Line(field))
}

// hasHugeExponent reports whether a scalar of the JSON text is a number like
// 1e-999999999: to read one as a Quantity takes time and memory without bound.
func hasHugeExponent(text []byte) bool {
	for i, c := range text {
		if c != 'e' && c != 'E' {
			continue
		}
		after := bytes.TrimLeft(text[i+1:min(i+3, len(text))], "+-")
		if len(after) == 0 || !isDigit(after[0]) {
			continue
		}
		exponent := bytes.TrimLeft(text[i+1:], "+-")
		rest := bytes.TrimLeft(exponent, "0123456789")
		long := len(exponent)-len(rest) >= 3
		if long && endsScalar(rest) && beginsScalar(text[:i]) {
			return true
		}
	}
	return false
}

// beginsScalar reports whether text ends with a number that a scalar begins with.
func beginsScalar(text []byte) bool {
	before := bytes.TrimRight(text, "0123456789.")
	found := len(before) < len(text)
	before = bytes.TrimRight(before, "+-")
	return found &&
		(len(before) == 0 || strings.IndexByte("\":,[ \n\r\t", before[len(before)-1]) >= 0)
}

func endsScalar(rest []byte) bool {
	return len(rest) == 0 || strings.IndexByte("\",]} \n\r\t", rest[0]) >= 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
