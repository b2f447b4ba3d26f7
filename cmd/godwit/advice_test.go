package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// advice lists every message that tells an operator to delete, move, restore or confirm something,
// by words of it, and the test that follows it literally on VMs that run: a script, or a test of a
// package. A row without one says why there is none.
var advice = []struct{ text, test, why string }{
	{text: "repair the file or ", test: "advice.txtar"},
	{text: "move the directory away", test: "advice.txtar"},
	{text: "give its agent back the directory", test: "advice.txtar"},
	{text: "end the process", test: "advice.txtar"},
	{text: "give each host its own", test: "advice.txtar"},
	{text: "stop one of the two, or give it another name", test: "advice.txtar"},
	{text: "runs there, say so: godwit host adopt", test: "advice.txtar"},
	{text: "may be moved away, else its VM has to be looked at first", test: "advice.txtar"},
	{text: "stop it, or go through its socket", test: "word.txtar"},
	{text: "a backup) in its place", test: "word.txtar"},
	{text: "remove it, or choose another path", test: "word.txtar"},
	{text: "inspect both guests, decide which one is good", test: "falsedead.txtar"},
	{text: "end the wrong one, or decide", test: "internal/recovery"},
	{text: "will run twice.", test: "word.txtar"},
	{text: "or, when the host is off: godwit host confirm-down", test: "returned.txtar"},
	{text: "stop it first with godwit vm stop", test: "word.txtar"},
	{text: "stop the wrong one, and give it another name", test: "onecopy.txtar"},
	{text: "once the refused agent is stopped: godwit host adopt", test: "onecopy.txtar"},
	{text: "stop one of them, or give it another name", test: "onecopy.txtar"},
	{text: "wrong one, stop it, and try again when godwit host list shows", test: "onecopy.txtar"},
	{text: "VMs run on: godwit store reconcile", test: "setback.txtar"},
	{text: ": godwit store reconcile", test: "anew.txtar"},
	{text: "mount it writable again, and start the controller again", test: "readonly.txtar"},
	{text: "start its agent, or, when it is off and stays off, add --without HOST",
		test: "internal/recovery"},
	{text: "add --decide %s=HOST, or =none", test: "internal/recovery"},
	{text: "Leave PATH.seen where it is", test: "backup.txtar"},
	{text: "a controller serves %s: stop it first", test: "backup.txtar"},
	{text: "or move the damaged file away first", test: "backup.txtar"},
	{text: "use godwit store reconcile", test: "backup.txtar"},

	{text: "a disk is reverted only while its VM is stopped: godwit vm stop it first", test: "vm-life.txtar"},
	{text: "it is not stopped: godwit vm stop it first", test: "vm-life.txtar"},
	{text: "delete it with godwit vm snapshot delete first", why: "the migration is refused before it begins, and " +
		"the VM runs on where it is (agent TestSnapshot tests, vm-life.txtar deletes one)"},
	{text: "is there already: move it away, or choose another path", test: "hypervisor/qmp.TestADiskThatDoesNotMove"},
	{text: "which would not be copied: delete it first", test: "hypervisor/qmp.TestADiskMovesWhileItsGuestWrites"},
	{text: "would not move with it: godwit vm snapshot delete it first", why: "the request is refused before it is stored, and " +
		"changes nothing (vm-life.txtar asks for it, and deletes the snapshot)"},
	{text: "delete it first, or choose another name", test: "advice.txtar"},
	{text: "is no file: move it away", test: "advice.txtar"},
	{text: "shut its guest down on %s if it is not needed", why: "agents report only copies whose VM has a record, so that no VM of a test brings it up; " +
		"internal/client tests the text"},
	{text: "stop it, or choose another directory", test: "advice.txtar"},
	{text: "which runs this: move it away, or chown it", why: "the file is an audit log: no VM starts, stops or moves by " +
		"what is done to it"},
	{text: "its end is no audit log: move it away", test: "advice.txtar"},
	{text: "is here already: move it away", why: "the file is the image of no VM there: the migration is refused " +
		"before anything is received (hypervisor/qmp TestATargetDoesNotOverwriteADisk)"},
	{text: "of an earlier VM of that name: move it away, or remove it",
		why: "the file is the image of a VM that was deleted: the migration is refused before anything is " +
			"received, and no VM that runs has it open"},
	{text: "virsh managedsave-remove", test: "hypervisor/libvirt.TestAManagedSaveIsLeftAlone"},
	{text: "remove them with virsh %s-delete", test: "hypervisor/libvirt.TestSnapshotsAreInTheImage"},
	{text: "remove these from it, or move it", why: "it names devices inside of a guest: whether the guest can do " +
		"without them only its owner knows"},
	{text: "virsh metadata --remove", why: "the domain counts as foreign then: godwit starts, stops and moves " +
		"nothing of it, and migrates no VM of its name there"},
	{text: "has moved it away: abandon or release it", why: "it is told to the agent, which does that with evidence; " +
		"an operator is asked for nothing"},
	{text: "remove its files: %v", why: "it names the step that failed, before the error of the file system: it asks " +
		"for nothing"},
	{text: "or remove the key if it is not godwit's", test: "internal/etcdstore.TestAForeignKeyIsRemovedAsAdvised"},
}

// asks is what such messages say.
var asks = regexp.MustCompile(`move[sd]? (it|the \w+|them)? ?away|put back|put a copy|repair the|` +
	`remove (it|them|these|the key)|delete it |stop (it|one|the one|the wrong)|end the (process|other|wrong)|` +
	`godwit host (adopt|confirm-down)|godwit store reconcile|will run twice|add --|managedsave-remove|` +
	`metadata --remove|guest down|give each host|mount it writable|both guests`)

// TestEveryAdviceIsListedAndTested finds the messages in the sources of what agents, controllers and
// operators are told.
func TestEveryAdviceIsListedAndTested(t *testing.T) {
	testutil.Unraced(t)
	found := map[string]bool{}
	for _, dir := range []string{"agent", "internal/cli", "controller", "internal/daemon",
		"hypervisor/libvirt", "hypervisor/qmp", "internal/backend", "internal/durable", "internal/recovery", "store", "internal/audit",
		"internal/boltstore", "internal/client", "internal/domxml",
		"internal/etcdstore", "internal/qemu"} {
		for _, m := range messages(t, filepath.Join("../..", dir)) {
			if !asks.MatchString(m.text) {
				continue
			}
			listed := false
			for _, a := range advice {
				if strings.Contains(m.text, a.text) {
					listed, found[a.text] = true, true
				}
			}
			if !listed {
				t.Errorf("%s: this advice is not listed: %q", m.at, m.text)
			}
		}
	}
	for _, a := range advice {
		if !found[a.text] {
			t.Errorf("no message says %q any more", a.text)
		}
		switch script := filepath.Join("testdata/script", a.test); {
		case a.test == "" && a.why == "":
			t.Errorf("%q is not tested, and nothing says why", a.text)
		case strings.HasSuffix(a.test, ".txtar"):
			if _, err := os.Stat(script); err != nil {
				t.Errorf("%q: %v", a.text, err)
			}
		case strings.Contains(a.test, ".Test"):
			dir, name, _ := strings.Cut(a.test, ".")
			if !hasTest(t, filepath.Join("../..", dir), name) {
				t.Errorf("%q: there is no %s in %s", a.text, name, dir)
			}
		}
	}
}

// hasTest reports whether a directory has a test of a name.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(path string) bool {
		return strings.Contains(read(t, path), "\nfunc "+name+"(t ")
	})
}

// message is a text in a source, with what is added to it by +.
type message struct{ text, at string }

func messages(t *testing.T, dir string) (all []message) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") ||
			strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test/") {
			return err
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			e, is := n.(ast.Expr)
			if !is {
				return true
			}
			text, whole := textOf(e)
			if whole {
				all = append(all, message{text, files.Position(e.Pos()).String()})
			}
			return !whole
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// textOf returns the text of a literal, or of a sum with one.
func textOf(e ast.Expr) (text string, is bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		left, a := textOf(e.X)
		right, b := textOf(e.Y)
		return left + right, e.Op == token.ADD && (a || b)
	}
	return "", false
}
