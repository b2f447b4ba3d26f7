//go:build !linux

package heap

// ask does nothing: elsewhere the kernel decides alone.
func (p *Pages) ask(bool) {}

// promises reports whether the kernel is sure to promise so many bytes: nobody knows.
func promises(int64) bool { return false }
