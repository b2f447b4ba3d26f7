package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
)

// novaMaxInput is how long a file may be. One is held in memory at a time.
const novaMaxInput = 512 << 20

// The kinds of things, as the API names lists of them.
const (
	servers     = "servers"
	hypervisors = "hypervisors"
	flavors     = "flavors"

	services     = "services"
	serverGroups = "server_groups"
)

// IsNova reports whether a file that starts so may be one of openstack's: JSON, and a word of
// its lists is in it, or a list that is empty.
func IsNova(start []byte) bool {
	start = bytes.TrimSpace(start)
	if len(start) == 0 || start[0] != '[' && start[0] != '{' {
		return false
	}
	if string(start) == "[]" { // a list of nothing does not say what it has none of
		return true
	}
	for _, word := range []string{`"servers"`, `"hypervisors"`, `"flavors"`, `"server_groups"`, `"nova-compute"`,
		`"Hypervisor Hostname"`, `"Flavor`, `"VCPUs"`, `"Power State"`, `"Task State"`,
		`"Members"`} {
		if bytes.Contains(start, []byte(word)) && !bytes.Contains(start, []byte(`"apiVersion"`)) {
			return true
		}
	}
	return false
}

// ReadNova reads a fleet from files. The name is that of them all, for problems; d is what Nova
// does not know. An error is [inventory.Problems], unless a file cannot be read or d is
// invalid.
func ReadNova(name string, files []string, d inventory.Defaults) (*inventory.Fleet, error) {
	return readNova(name, files, nil, d)
}

// readNova does what ReadNova does. Others are JSON files in the same folder that [IsNova] does not recognise: what
// was to be a list may be among them.
func readNova(name string, files, others []string, d inventory.Defaults) (*inventory.Fleet, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	c := newCloud(name, d)
	for _, path := range files {
		data, err := readAll(path)
		if err != nil {
			return nil, err
		}
		c.File = path
		c.text, c.counted, c.lines = data, 0, 1
		c.documents(json.NewDecoder(bytes.NewReader(data)))
	}
	for _, path := range others {
		data, err := readAll(path)
		if err != nil {
			return nil, err
		}
		c.File = path
		c.text, c.counted, c.lines = data, 0, 1
		c.unrecognised()
	}
	c.File = name
	c.EvictBy(evacuation.LiveMigrate) // as an evacuation of a host does
	if c.Err() == nil {
		c.finish()
	}
	return c.Fleet()
}

func readAll(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return yamldoc.ReadAll(path, f, novaMaxInput)
}

// A place is where something was read.
type place struct {
	file string
	line int
}

// An object is one server, hypervisor or flavor.
type novaObject struct {
	place
	cloud  *cloud
	what   string // "server web", for problems
	fields map[string]any
}

// documents reads JSON documents until the end, or until one is damaged.
func (c *cloud) documents(d *json.Decoder) {
	d.UseNumber()
	for !c.Full() {
		t, err := d.Token()
		if err == io.EOF {
			return
		}
		switch {
		case err != nil:
			c.damaged(d, err)
			return
		case t == json.Delim('['):
			err = c.items(d, "")
		case t == json.Delim('{'):
			err = c.answer(d)
		default:
			c.Errorf(c.line(d), "", "needs a list or an answer of the API, has %v", t)
			return
		}
		if err != nil {
			c.damaged(d, err)
			return
		}
	}
}

// unrecognised judges a file that holds none of the lists. One that is empty, is no JSON, is cut off, or is an answer
// with an error stands where a list was to be: without the list VMs would be missing.
func (c *cloud) unrecognised() {
	if len(bytes.TrimSpace(c.text)) == 0 {
		c.Errorf(1, "", "the file is empty: print the list again, or take the file out of the folder")
		return
	}
	d := json.NewDecoder(bytes.NewReader(c.text))
	for {
		line := c.line(d)
		var fields map[string]json.RawMessage
		var text json.RawMessage
		err := d.Decode(&text)
		if err == io.EOF {
			break
		}
		if err != nil {
			c.damaged(d, err)
			return
		}
		if json.Unmarshal(text, &fields) != nil {
			continue // it is no answer of the API
		}
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			if c.failed(line, key, fields[key]) {
				return
			}
		}
	}
	c.Warnf(1, "", "not recognised, left out: it is no list of servers, hypervisors, flavors, services or server groups "+
		"as openstack prints them")
}

// failed reports that an answer of the API is an error: {"forbidden": {"code": 403, "message": …}}.
// Source: Nova 2026.1 nova/api/openstack/wsgi.py (Fault: the key is the kind of the error).
func (c *cloud) failed(line int, key string, value json.RawMessage) bool {
	var fault struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(value, &fault) != nil || fault.Code < 400 || fault.Code > 599 {
		return false
	}
	c.Errorf(line, "", "%s", strings.TrimRight(fmt.Sprintf("it is an error of the API and no list: %s, code %d: %.200s", key,
		fault.Code, fault.Message), ": "))
	return true
}

// answer reads an answer of the API: {"servers": […]}.
func (c *cloud) answer(d *json.Decoder) error {
	line := c.line(d)
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		kind, _ := key.(string)
		if of, are := strings.CutSuffix(kind, "_links"); are {
			if err := c.links(d, of); err != nil {
				return err
			}
			continue
		}
		if !slices.Contains([]string{servers, hypervisors, flavors, services, serverGroups}, kind) {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return err
			}
			c.failed(line, kind, skipped)
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return errors.Join(err, fmt.Errorf("%s is no list", kind))
		}
		c.pages[kind]++
		if err := c.items(d, kind); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// links reads where a list goes on.
func (c *cloud) links(d *json.Decoder, kind string) error {
	at := place{c.File, c.line(d)}
	var text json.RawMessage
	if err := d.Decode(&text); err != nil {
		return err
	}
	var all []struct{ Rel string }
	if json.Unmarshal(text, &all) != nil {
		return nil // whatever it is, it is no link
	}
	for _, link := range all {
		if link.Rel == "next" {
			c.goesOn[kind] = append(c.goesOn[kind], at)
		}
	}
	return nil
}

// atOnce is how many things the API lists at most unless it is asked to go on, by default.
// Source: Nova 2026.1 nova/conf/api.py (max_limit).
const atOnce = 1000

// items reads the rest of a list. Without a kind each item's own fields tell it.
func (c *cloud) items(d *json.Decoder, kind string) error {
	n := 0
	defer func() {
		switch {
		case kind != "":
		case n == 0:
			c.blank = true
		case n == atOnce:
			c.Warnf(0, "", "a list has %d items, as many as the API lists at once: if there are "+
				"more, print it with --limit -1", n)
		}
	}()
	for d.More() && !c.Full() {
		line := c.line(d)
		o := novaObject{place: place{c.File, line}, cloud: c}
		if err := d.Decode(&o.fields); err != nil {
			return err
		}
		c.object(&o, kind)
		n++
	}
	if c.Full() {
		return nil
	}
	_, err := d.Token()
	return err
}

func (c *cloud) object(o *novaObject, kind string) {
	if kind == "" {
		switch {
		case o.has("Hypervisor Hostname"):
			kind = hypervisors
		case o.has("RAM") && o.has("VCPUs"):
			kind = flavors
		case o.has("Binary") && o.has("Host"):
			kind = services
		case o.has("Members") && (o.has("Policy") || o.has("Policies")):
			kind = serverGroups
		case o.has("Status") && o.has("Name"):
			kind = servers
		}
	}
	switch kind {
	case hypervisors:
		c.hypervisor(o)
	case flavors:
		c.flavor(o)
	case servers:
		c.server(o)
	case services:
		c.service(o)
	case serverGroups:
		c.serverGroup(o)
	default:
		o.what = "item"
		o.wrong("", "it is no server, hypervisor, flavor, service or server group as openstack … list --long -f json "+
			"prints them")
	}
}

// damaged reports where JSON is no longer JSON.
func (c *cloud) damaged(d *json.Decoder, err error) {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		c.Errorf(c.line(d), "", "it ends in the middle: is it cut off?")
		return
	}
	at := d.InputOffset()
	if syntax, is := errors.AsType[*json.SyntaxError](err); is {
		at = max(at, syntax.Offset)
	}
	c.Errorf(c.lineAt(at), "", "it is no JSON as openstack prints it: %v", err)
}

// line returns the line of what comes next.
func (c *cloud) line(d *json.Decoder) int {
	at := d.InputOffset()
	for at < int64(len(c.text)) && strings.IndexByte(" \t\r\n,:", c.text[at]) >= 0 {
		at++
	}
	return c.lineAt(at)
}

// lineAt returns the line of an offset, which never goes back.
func (c *cloud) lineAt(at int64) int {
	at = max(c.counted, min(at, int64(len(c.text))))
	c.lines += bytes.Count(c.text[c.counted:at], []byte{'\n'})
	c.counted = at
	return c.lines
}

// wrong reports a problem of the object.
func (o *novaObject) wrong(field, format string, args ...any) {
	file := o.cloud.File
	o.cloud.File = o.file
	o.cloud.Errorf(o.line, strings.TrimSpace(o.what+" "+field), format, args...)
	o.cloud.File = file
}

func (o *novaObject) warn(field, format string, args ...any) {
	file := o.cloud.File
	o.cloud.File = o.file
	o.cloud.Warnf(o.line, strings.TrimSpace(o.what+" "+field), format, args...)
	o.cloud.File = file
}

func (o *novaObject) has(name string) bool { return o.fields[name] != nil }

// text returns the first of several fields that is there.
func (o *novaObject) text(names ...string) string {
	for _, name := range names {
		switch v := o.fields[name].(type) {
		case nil:
		case string:
			if v != "" {
				return v
			}
		case json.Number:
			return v.String()
		}
	}
	return ""
}

// maxNumber keeps sums from overflowing: 1 EiB in MiB.
const maxNumber = 1 << 40

// number returns the first of several fields that is there, and whether one is.
func (o *novaObject) number(names ...string) (int64, bool) {
	for _, name := range names {
		if !o.has(name) {
			continue
		}
		text := o.text(name)
		n, err := json.Number(text).Int64()
		if err != nil || n < 0 || n > maxNumber {
			o.wrong(name, "needs a whole number from 0 to %d, has %v", int64(maxNumber),
				o.fields[name])
			return 0, true
		}
		return n, true
	}
	return 0, false
}

// inner returns an object in a field.
func (o *novaObject) inner(name string) (*novaObject, bool) {
	fields, is := o.fields[name].(map[string]any)
	return &novaObject{place: o.place, cloud: o.cloud, what: o.what + " " + name, fields: fields}, is
}
