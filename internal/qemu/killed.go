//go:build linux

package qemu

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// exitingFlag is set in the flags of a process from the beginning of its end.
// Source: Linux include/linux/sched.h (PF_EXITING).
const exitingFlag = 0x4

// flagsField is the place of a process's flags in /proc/pid/stat, counted as [stateField].
const flagsField = 6

// killed reports whether the process has been killed and is about to be gone, or is gone: SIGKILL is
// pending, or it ends already. It executes nothing of its own any more. False is also that it cannot
// be seen.
// Source: Linux proc(5) (SigPnd, ShdPnd), kernel/signal.c (complete_signal).
func (f Found) killed() bool {
	pid := f.Identity.PID
	if s, err := readStatus(pid); err == nil && s.start != f.Identity.Start || ending(pid) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > flagsField {
			flags, err := strconv.ParseUint(string(fields[flagsField]), 10, 64)
			if err == nil && flags&exitingFlag != 0 {
				return true
			}
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && (pends(text, "SigPnd:") || pends(text, "ShdPnd:"))
}

// pends reports whether SIGKILL is in a set of signals of /proc/pid/status.
func pends(status []byte, name string) bool {
	for line := range bytes.Lines(status) {
		set, is := bytes.CutPrefix(line, []byte(name))
		if !is {
			continue
		}
		mask, err := strconv.ParseUint(string(bytes.TrimSpace(set)), 16, 64)
		return err == nil && mask&(1<<(syscall.SIGKILL-1)) != 0
	}
	return false
}
