// Package wire reads and writes the lines of QMP, and never opens, waits for or
// closes anything: it is bytes in and values out. What no QMP server says is a
// [*ProtocolError]; no input makes it panic or hold more than a stated limit.
package wire
