//go:build linux

package qemu

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// maxArgs is how many bytes of a process's arguments are looked at.
const maxArgs = 1 << 20

// A Found is a process that [Find] found.
type Found struct {
	Identity Identity
	Args     []string // its arguments, the program's name first
	// Env is its environment, as it was started. [Find] does not read it, and of another
	// user's process it may be unknown: nil.
	Env []string
}

// Find returns the processes of the caller's user whose arguments match, ordered
// by number. One that was started an instant ago has no arguments yet and is not
// found. A process may give itself any arguments: what match accepts is a
// candidate, not a proof. Arguments beyond the first MiB are not seen.
//
// It fails if some process of the user cannot be looked at, since an empty answer
// would then prove nothing; what ends during the search is left out.
func Find(match func(argv []string) bool) ([]Found, error) { return find(match, false) }

// FindAll is Find for the processes of all users, with their environments. What belongs to
// another user, and cannot be looked at, is left out, and so is what has just been killed.
func FindAll(match func(argv []string) bool) ([]Found, error) {
	all, err := find(match, true)
	for i := range all {
		all[i].Env, _ = readArgs(fmt.Sprintf("/proc/%d/environ", all[i].Identity.PID))
	}
	return slices.DeleteFunc(all, func(f Found) bool {
		return len(f.Env) == 0 && ending(f.Identity.PID)
	}), err
}

// ending reports whether a process has no memory any more, and so neither arguments nor
// environment: it is about to be gone.
// Source: Linux fs/proc/base.c (get_mm_cmdline, environ_read), kernel/exit.c (do_exit: exit_mm).
func ending(pid int) bool {
	args, err := readArgs(fmt.Sprintf("/proc/%d/cmdline", pid))
	return errors.Is(err, ErrGone) || err == nil && len(args) == 0
}

func find(match func(argv []string) bool, allUsers bool) ([]Found, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("find processes: %w", err)
	}
	var found []Found
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // no process
		}
		start, args, err := inspect(pid, allUsers)
		switch {
		case errors.Is(err, ErrGone), allUsers && errors.Is(err, fs.ErrPermission):
		case err != nil:
			return nil, fmt.Errorf("find processes: %w", err)
		case len(args) > 0 && match(args):
			found = append(found, Found{Identity: Identity{PID: pid, Start: start, Boot: boot},
				Args: args})
		}
	}
	slices.SortFunc(found, func(a, b Found) int {
		return cmp.Compare(a.Identity.PID, b.Identity.PID)
	})
	return found, nil
}

// inspect returns when a process started, and its arguments: none if it is a part of the kernel,
// or if it belongs to another user and allUsers is false. It fails with [ErrGone] if
// it ends meanwhile.
func inspect(pid int, allUsers bool) (start uint64, args []string, err error) {
	dir := "/proc/" + strconv.Itoa(pid)
	at, err := os.Stat(dir)
	if vanished(err) {
		return 0, nil, ErrGone
	}
	if err != nil {
		return 0, nil, err
	}
	owner, ok := at.Sys().(*syscall.Stat_t)
	if !allUsers && (!ok || owner.Uid != uint32(os.Geteuid())) {
		return 0, nil, nil
	}
	before, err := readStatus(pid)
	if err != nil {
		return 0, nil, err
	}
	args, err = readArgs(dir + "/cmdline")
	if err != nil {
		return 0, nil, err
	}
	after, err := readStatus(pid)
	if err != nil {
		return 0, nil, err
	}
	if after.ended() || after.start != before.start {
		return 0, nil, ErrGone
	}
	return after.start, args, nil
}

func readArgs(name string) ([]string, error) {
	file, err := os.Open(name)
	if vanished(err) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxArgs+1))
	if vanished(err) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	return splitArgs(text), nil
}

// splitArgs splits the text of /proc/pid/cmdline. What was cut off at the limit
// is left out, since half an argument is another argument.
func splitArgs(text []byte) []string {
	if len(text) > maxArgs {
		text = text[:bytes.LastIndexByte(text[:maxArgs], 0)+1]
	}
	if len(text) == 0 {
		return nil
	}
	var args []string
	for arg := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte{0}), []byte{0}) {
		args = append(args, string(arg))
	}
	return args
}
