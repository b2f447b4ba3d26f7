package guest

import (
	"encoding/binary"
	"math"
)

// An assembler turns calls into machine code. A program is run again until no
// label moves, so that a label may be used before it is placed and a jump is
// short wherever it can be.
type assembler struct {
	origin int
	code   []byte
	long   bool           // 64-bit code; otherwise 16-bit
	labels map[string]int // addresses, of this pass or of the one before
	placed map[string]bool
	near   map[int]bool // which jumps, counted from the beginning, need more than a byte
	jumps  int
	first  bool // this is the first pass: nothing is known of the labels ahead
	moved  bool // something has changed: another pass is needed
	err    error
}

// assemble returns the code of the program, to be run at origin. It fails on a
// label that is used and never placed or placed twice, and on an operand that
// an instruction does not take.
func assemble(origin int, program func(*assembler)) ([]byte, error) {
	a := &assembler{origin: origin, labels: map[string]int{}, near: map[int]bool{}}
	for a.first, a.moved = true, true; a.moved && a.err == nil; a.first = false {
		a.code, a.long, a.jumps, a.moved = nil, false, 0, false
		a.placed = map[string]bool{}
		program(a)
		for name := range a.labels {
			if !a.placed[name] {
				a.fail("the label %q is used and not placed", name)
			}
		}
	}
	return a.code, a.err
}

func (a *assembler) here() int { return a.origin + len(a.code) }

// label names the place that the next instruction will have.
func (a *assembler) label(name string) {
	if a.placed[name] {
		a.fail("the label %q is placed twice", name)
	}
	if a.labels[name] != a.here() {
		a.moved = true
	}
	a.placed[name], a.labels[name] = true, a.here()
}

// addr returns where a label is. While that is not known it returns the origin,
// which no encoding shortens as it would a small number.
func (a *assembler) addr(name string) imm {
	at, known := a.labels[name]
	if !known {
		at = a.origin
		a.labels[name], a.moved = at, true
	}
	return imm(at)
}

// pad fills with zeros up to an offset from the beginning.
func (a *assembler) pad(offset int) {
	if len(a.code) > offset {
		a.fail("the code does not fit into %d bytes", offset)
		return
	}
	a.code = append(a.code, make([]byte, offset-len(a.code))...)
}

func (a *assembler) emit(code ...byte)   { a.code = append(a.code, code...) }
func (a *assembler) word(v uint16)       { a.code = binary.LittleEndian.AppendUint16(a.code, v) }
func (a *assembler) doubleWord(v uint32) { a.code = binary.LittleEndian.AppendUint32(a.code, v) }
func (a *assembler) quadWord(v uint64)   { a.code = binary.LittleEndian.AppendUint64(a.code, v) }

// immediate emits v in as many bytes as an operand of that size takes: 64-bit
// operands take 32 bits, which the processor extends with the sign.
func (a *assembler) immediate(v imm, size int) {
	switch {
	case size == 8 && v >= math.MinInt8 && v <= math.MaxUint8:
		a.emit(byte(v))
	case size == 16 && v >= math.MinInt16 && v <= math.MaxUint16:
		a.word(uint16(v))
	case size == 32 && v >= math.MinInt32 && v <= math.MaxUint32,
		size == 64 && v >= math.MinInt32 && v <= math.MaxInt32:
		a.doubleWord(uint32(v))
	default:
		a.fail("the number %#x does not fit into an operand of %d bits", int64(v), size)
	}
}

// branch emits a jump to a label: the short form where the distance fits into a
// byte, and otherwise the near one. An empty form does not exist.
func (a *assembler) branch(name string, short, near []byte) {
	number := a.jumps
	a.jumps++
	to := int(a.addr(name))
	distance := to - (a.here() + len(short) + 1)
	fits := a.first || (distance >= math.MinInt8 && distance <= math.MaxInt8)
	switch {
	case a.near[number]: // once near, always near: the passes come to an end
	case len(short) == 0, !fits && len(near) > 0:
		a.near[number], a.moved = true, true
	case !fits:
		a.fail("%q is %d bytes away, too far for this jump", name, distance)
	}
	if !a.near[number] {
		a.emit(short...)
		a.emit(byte(distance))
		return
	}
	size := 16
	if a.long {
		size = 32
	}
	a.emit(near...)
	a.immediate(imm(to-a.here()-size/8), size)
}
