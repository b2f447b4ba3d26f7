package heap

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// huge is what most machines' huge pages measure. What is smaller than two of them need not hold
// one.
const huge = 2 << 20

// ask asks for huge pages wherever the process has much private memory: where it will use it
// (madvise(2), MADV_HUGEPAGE), and, once it is large, where it does already (MADV_COLLAPSE,
// since Linux 6.1). What a kernel cannot do it refuses, and all stays as it was.
func (p *Pages) ask(large bool) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	if p.asked == nil {
		p.asked = map[uintptr]uintptr{}
	}
	for line := range strings.Lines(string(maps)) {
		from, to := private(line)
		if to-from < 2*huge || p.asked[from] == to {
			continue
		}
		madvise(from, to, unix.MADV_HUGEPAGE)
		p.used = append(p.used, span{max(from, min(to, p.asked[from])), to})
		p.asked[from] = to
	}
	if large {
		for _, s := range p.used {
			s.collapse()
		}
		p.used = nil
	}
}

// collapse has what is used already moved into huge pages, one after the other: at the first
// that it cannot fill the kernel may leave all the others as they are.
func (s span) collapse() {
	for at := (s.from + huge - 1) / huge * huge; at+huge <= s.to; at += huge {
		madvise(at, at+huge, unix.MADV_COLLAPSE)
	}
}

func madvise(from, to uintptr, advice uintptr) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, advice)
}

// private returns from where to where a line of /proc/PID/maps says that memory can be written
// and is no file's; nowhere is any other line.
// Source: proc_pid_maps(5).
func private(line string) (from, to uintptr) {
	f := strings.Fields(line)
	if len(f) < 5 || f[1] != "rw-p" || f[4] != "0" {
		return 0, 0
	}
	first, last, _ := strings.Cut(f[0], "-")
	a, err := strconv.ParseUint(first, 16, strconv.IntSize)
	b, wrong := strconv.ParseUint(last, 16, strconv.IntSize)
	if err != nil || wrong != nil || b < a {
		return 0, 0
	}
	return uintptr(a), uintptr(b)
}
