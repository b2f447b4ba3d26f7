package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
)

var update = flag.Bool("update", false, "write docs/reference.md")

// TestTheReferenceIsThatOfTheCode: docs/reference.md is made from flags, types, comments and collectors.
// go test ./cmd/godwit -run Reference -update writes it.
func TestTheReferenceIsThatOfTheCode(t *testing.T) {
	const path = "../../docs/reference.md"
	text := reference(t)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	has, err := os.ReadFile(path)
	if err != nil || string(has) != text {
		t.Errorf("%s is not what the code says (%v): run go test -tags libvirt_dlopen ./cmd/godwit -run Reference -update",
			path, err)
	}
}

// reference writes the page.
func reference(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Reference\n\nMade from the code by a test of `cmd/godwit`; the manual pages have the same flags, and examples.\n")
	b.WriteString("\n## Exit statuses\n\n| status | meaning |\n| --- | --- |\n")
	for _, c := range constants(t, ".", func(name string) bool { return strings.HasPrefix(name, "exit") }) {
		fmt.Fprintf(&b, "| %s | %s |\n", c.value, c.comment)
	}
	b.WriteString("\n## Environment\n\n| variable | meaning |\n| --- | --- |\n")
	for _, c := range variables(t) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.value, c.comment)
	}
	root := rootCommand()
	b.WriteString("\n## Commands\n\n| command | what it does |\n| --- | --- |\n")
	listCommands(&b, root)
	for _, name := range []string{"controller", "agent"} {
		c, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		listFlags(&b, c)
	}
	b.WriteString("\n## The file of `godwit controller --config`\n\nYAML. A scenario has these keys, too. Durations (`90s`, `5m`), " +
		"sizes (`8GiB`) and speeds (`1Gbit/s`) are written with their units; a key that is not known is refused with its line.\n\n" +
		"| key | type | meaning |\n| --- | --- | --- |\n")
	listed := &keys{t: t, b: &b, comment: commentsOf(t), seen: map[string]bool{}}
	listed.walk("", reflect.TypeFor[config.File]())
	b.WriteString("\n## The file of a fleet or a scenario\n\nYAML, for `godwit plan`, `godwit simulate`, `godwit convert` and " +
		"`godwit explain destination`: see [scenarios.md](scenarios.md). A fleet has `hosts` and `vms`. The keys of the " +
		"controller's file, above, may be in it as well.\n\n| key | type | meaning |\n| --- | --- | --- |\n")
	listed.walk("", reflect.TypeFor[config.Spec]())
	b.WriteString("\n## Events of scenarios\n\nAn event is written `[TIME | when VM=PHASE] EVENT`, see [scenarios.md](scenarios.md).\n\n" +
		"| event | what it does |\n| --- | --- |\n")
	for _, help := range config.EventHelp() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(help[0], "|", "\\|"), help[1])
	}
	b.WriteString("\n## Metrics\n\n`--listen` serves them at `/metrics`, beside those that the Go runtime and the process have of themselves. " +
		"Alerts and the dashboard are in [monitoring.md](monitoring.md).\n\n| metric | type | labels | of | meaning |\n" +
		"| --- | --- | --- | --- | --- |\n")
	listMetrics(t, &b)
	return b.String()
}

// A constant is one with its value as it is written, and its comment.
type constant struct{ name, value, comment string }

// constants finds the constants of a package by their names, in the order of its files. Each has a comment.
func constants(t *testing.T, dir string, which func(string) bool) (all []constant) {
	for _, f := range sources(t, dir) {
		ast.Inspect(f, func(n ast.Node) bool {
			v, is := n.(*ast.ValueSpec)
			if !is || len(v.Names) != 1 || len(v.Values) != 1 || !which(v.Names[0].Name) {
				return true
			}
			text := strings.TrimSpace(v.Doc.Text() + v.Comment.Text())
			literal, is := v.Values[0].(*ast.BasicLit)
			if !is || text == "" {
				t.Errorf("%s: %s has no value or no comment", dir, v.Names[0].Name)
				return true
			}
			all = append(all, constant{v.Names[0].Name, strings.Trim(literal.Value, `"`), plainText(text)})
			return true
		})
	}
	return all
}

// variables finds the environment variables that the command and its daemons read. Each is a constant.
func variables(t *testing.T) (all []constant) {
	for _, dir := range []string{".", "../../internal/cli", "../../internal/daemon", "../../internal/durable",
		"../../internal/boltstore", "../../internal/etcdstore", "../../internal/pki", "../../hypervisor/qmp",
		"../../hypervisor/libvirt", "../../internal/qemu", "../../internal/client"} {
		read := map[string]bool{}
		for _, f := range sources(t, dir) {
			ast.Inspect(f, func(n ast.Node) bool {
				call, is := n.(*ast.CallExpr)
				if !is || len(call.Args) == 0 {
					return true
				}
				if s, is := call.Fun.(*ast.SelectorExpr); is && (s.Sel.Name == "Getenv" || s.Sel.Name == "LookupEnv") {
					name, is := call.Args[0].(*ast.Ident)
					if !is {
						t.Errorf("%s reads a variable of the environment that is no constant with a comment", dir)
						return true
					}
					read[name.Name] = true
				}
				return true
			})
		}
		for _, c := range constants(t, dir, func(name string) bool { return read[name] }) {
			if !slices.ContainsFunc(all, func(has constant) bool { return has.value == c.value }) {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b constant) int { return cmp.Compare(a.value, b.value) })
	return all
}

// sources parses the files of a package, but for its tests.
func sources(t *testing.T, dir string) (files []*ast.File) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(paths), err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// listCommands lists a command and those below it.
func listCommands(b *strings.Builder, c *cobra.Command) {
	if c.Runnable() && c.HasParent() {
		fmt.Fprintf(b, "| `%s` | %s |\n", escaped(strings.TrimSuffix(c.UseLine(), " [flags]")), escaped(c.Short))
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			listCommands(b, below)
		}
	}
}

// listFlags lists the flags of a command.
func listFlags(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## Flags of `%s`\n\n| flag | default | meaning |\n| --- | --- | --- |\n", c.CommandPath())
	c.InheritedFlags() // adds those of the commands above to the flags of c
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		byDefault := f.DefValue
		if byDefault == "[]" || byDefault == "0" || byDefault == "0s" || byDefault == "false" {
			byDefault = ""
		}
		fmt.Fprintf(b, "| `--%s` | %s | %s |\n", strings.TrimSpace(f.Name+" "+value), escaped(byDefault), escaped(usage))
	})
}

// A documented type has the comments and the types of its fields.
type documented struct {
	t   reflect.Type
	dir string
}

// beside are the types of the core whose fields say what those of a file mean that have no comment of their own.
var beside = map[reflect.Type][]documented{
	reflect.TypeFor[inventory.ConfigSpec]():         {{reflect.TypeFor[migration.Cluster](), "../../migration"}},
	reflect.TypeFor[inventory.OptionsSpec]():        {{reflect.TypeFor[migration.Cluster](), "../../migration"}},
	reflect.TypeFor[inventory.StallDetectorSpec]():  {{reflect.TypeFor[convergence.StallDetector](), "../../migration/convergence"}},
	reflect.TypeFor[inventory.DowntimeTuningSpec](): {{reflect.TypeFor[convergence.DowntimeTuning](), "../../migration/convergence"}},
	reflect.TypeFor[config.ModelSpec]():             {{reflect.TypeFor[fake.Model](), "../../hypervisor/fake"}},
	reflect.TypeFor[config.Timeouts]():              {{reflect.TypeFor[migration.Timeouts](), "../../migration"}},
	reflect.TypeFor[config.Failover]():              {{reflect.TypeFor[controller.FailoverConfig](), "../../controller"}},
	reflect.TypeFor[config.Limits]():                {{reflect.TypeFor[migration.Limits](), "../../migration"}},
	reflect.TypeFor[config.Control]():               {{reflect.TypeFor[migration.Config](), "../../migration"}},
}

// units are the types of texts that no field of the core tells.
var units = map[string]string{"backoff.base": "duration", "backoff.cap": "duration", "grace": "duration",
	"evacuation.grace": "duration", "memory": "size", "disk": "size", "link": "speed", "uplink": "speed", "speed": "speed",
	"overhead": "size", "balloon": "size", "maxMemory": "size", "size": "size", "pageSize": "size", "hugepages": "size",
	"dirty": "speed", "workingSet": "size", "coldDirty": "speed", "until": "duration", "fencingTakes": "duration",
	"returnAfter": "duration", "min": "size", "max": "size", "step": "size", "dirtyPerCPU": "speed", "from": "duration", "for": "duration", "vary.dirty": "distribution",
	"vary.workingSet": "distribution", "vary.link": "distribution"}

// home is where the source of a type is.
func home(of reflect.Type) string {
	return filepath.Join("../..", strings.TrimPrefix(of.PkgPath(), "github.com/godwit-vm/godwit/"))
}

// keys lists the keys of files, each once.
type keys struct {
	t       *testing.T
	b       *strings.Builder
	comment func(dir string, of reflect.Type, field string) string
	seen    map[string]bool
}

// commentsOf returns a function that finds the comment of a field of a type.
func commentsOf(t *testing.T) func(dir string, of reflect.Type, field string) string {
	known := map[string]map[string]string{}
	return func(dir string, of reflect.Type, field string) string {
		if known[dir] == nil {
			known[dir] = map[string]string{}
			for _, f := range sources(t, dir) {
				ast.Inspect(f, func(n ast.Node) bool {
					spec, is := n.(*ast.TypeSpec)
					if !is {
						return true
					}
					if s, is := spec.Type.(*ast.StructType); is {
						for _, x := range s.Fields.List {
							for _, name := range x.Names {
								known[dir][spec.Name.Name+"."+name.Name] = x.Doc.Text() + x.Comment.Text()
							}
						}
					}
					return true
				})
			}
		}
		return known[dir][of.Name()+"."+field]
	}
}

// inPlace are the types of values that are a word, or a mapping of another type.
var inPlace = map[reflect.Type]reflect.Type{
	reflect.TypeFor[config.ModelChoice](): reflect.TypeFor[config.ModelSpec](),
}

// walk lists the keys of a type and those below.
func (k *keys) walk(prefix string, of reflect.Type) {
	for i := range of.NumField() {
		f := of.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if strings.Contains(options, "inline") {
			k.walk(prefix, f.Type)
			continue
		}
		text, kind := k.comment(home(of), of, f.Name), f.Type
		for _, other := range beside[of] {
			for _, name := range []string{f.Name, strings.TrimSuffix(strings.TrimSuffix(f.Name, "Ms"), "Seconds")} {
				if same, has := other.t.FieldByName(name); has {
					if text == "" {
						text = strings.TrimPrefix(k.comment(other.dir, other.t, name), name)
					}
					if kind.Kind() == reflect.String {
						kind = same.Type
					}
				}
			}
		}
		if key == "" {
			key = strings.ToLower(f.Name)
		}
		word, below, at := word(kind, prefix+key)
		if kind.Kind() == reflect.String || kind.Kind() == reflect.Pointer && kind.Elem().Kind() == reflect.String {
			word = cmp.Or(units[prefix+key], units[key], word)
		}
		if text = keyed(meaning(text, f.Name), of); text == "" && below == nil {
			k.t.Errorf("nothing says what %s%s means: give %s.%s a comment", prefix, key, of.Name(), f.Name)
		}
		if !k.seen[prefix+key] {
			fmt.Fprintf(k.b, "| `%s` | %s | %s |\n", prefix+key, word, text)
		}
		k.seen[prefix+key] = true
		if below != nil {
			k.walk(at+".", below)
		}
	}
}

// word says what a value is, and what is below it.
func word(of reflect.Type, at string) (text string, below reflect.Type, prefix string) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if spec, is := inPlace[of]; is {
		return "text or mapping", spec, at
	}
	switch of {
	case reflect.TypeFor[time.Duration]():
		return "duration", nil, ""
	case reflect.TypeFor[hypervisor.Bandwidth]():
		return "speed", nil, ""
	case reflect.TypeFor[hypervisor.Bytes]():
		return "size", nil, ""
	}
	switch of.Kind() {
	case reflect.Struct:
		return "mapping", of, at
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Struct {
			return "list", of.Elem(), at + "[]"
		}
		if of.Elem().Kind() == reflect.Slice {
			return "list of lists", of.Elem().Elem(), at + "[][]"
		}
		if of.Elem().Kind() == reflect.Float64 {
			return "list of numbers", nil, ""
		}
		return "list of texts", nil, ""
	case reflect.Map:
		if of.Elem().Kind() == reflect.Struct {
			return "mapping", of.Elem(), at + ".NAME"
		}
		if of.Elem().Kind() == reflect.Int || of.Elem().Kind() == reflect.Int64 {
			return "mapping of integers", nil, ""
		}
		return "mapping of texts", nil, ""
	case reflect.Bool:
		return "true or false", nil, ""
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "integer", nil, ""
	case reflect.Float64:
		return "number", nil, ""
	}
	return "text", nil, ""
}

// described is how a collector's description prints itself.
var described = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), (?:unit: "[^"]*", )?constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

// listMetrics lists what daemons measure.
func listMetrics(t *testing.T, b *strings.Builder) {
	rows := map[string]string{}
	daemon.DescribeMetrics(func(daemons string, c prometheus.Collector) {
		kind := "gauge"
		switch c.(type) {
		case *prometheus.HistogramVec:
			kind = "histogram"
		case *prometheus.CounterVec:
			kind = "counter"
		}
		to := make(chan *prometheus.Desc, 1000)
		c.Describe(to)
		close(to)
		for d := range to {
			m := described.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("%s is not understood", d)
			}
			name, _ := strconv.Unquote(m[1])
			help, _ := strconv.Unquote(m[2])
			if rows[name] == "" {
				rows[name] = fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", name, kind,
					strings.ReplaceAll(m[3], ",", ", "), daemons, escaped(help))
			}
		}
	})
	var names []string
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.WriteString(rows[name])
	}
}

var (
	dotted    = regexp.MustCompile(`^[a-z]+\.[a-z]\w+`) // a key
	begins    = regexp.MustCompile(`^ ?(is|are) `)
	elsewhere = regexp.MustCompile(` ?\((KubeVirt v|migration\.go)[^)]*\)|See [\w.]+\.`)
)

// meaning is the comment of a field without its name, and without what only readers of the code need.
func meaning(comment, field string) string {
	text := strings.TrimPrefix(strings.TrimSpace(comment), field)
	text = begins.ReplaceAllString(text, "")
	text = elsewhere.ReplaceAllString(plainText(text), "")
	text = strings.TrimSpace(strings.ReplaceAll(text, "DefaultCluster", "Default"))
	if text == "" {
		return ""
	}
	if key := dotted.FindString(text); key != "" {
		return "`" + key + "`" + strings.TrimPrefix(text, key)
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// keyed is a text with the keys of a file in place of the names of fields in Go.
func keyed(text string, of reflect.Type) string {
	for i := range of.NumField() {
		f := of.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key != "" && !slices.Contains([]string{"VM", "VMs", "CPUs"}, f.Name) { // they are words, too
			text = regexp.MustCompile(`([^.] )`+f.Name+`\b`).ReplaceAllString(text, "$1`"+key+"`")
		}
	}
	return text
}

// plainText is a comment in one line, without where a rule comes from.
func plainText(comment string) string {
	text, _, _ := strings.Cut(comment, "Source:")
	text = strings.Join(strings.Fields(text), " ")
	return escaped(regexp.MustCompile(`\[([\w.]+)\]`).ReplaceAllString(text, "$1"))
}

// escaped is a text in a cell of a table.
func escaped(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "\n", " ").Replace(text)
}
