package guest

// An operand is a register, a place in memory, or a number.
type operand interface{ isOperand() }

// A reg is a general register: its number in the low half, its size above.
type reg uint8

const (
	al reg = sizeByte + iota
	cl
	dl
	bl
	ah
	ch
	dh
	bh
)

const (
	ax reg = sizeWord + iota
	cx
	dx
	bx
	sp
	bp
	si
	di
)

const (
	eax reg = sizeDouble + iota
	ecx
	edx
	ebx
	esp
	ebp
	esi
	edi
	r8d
	r9d
	r10d
	r11d
	r12d
	r13d
	r14d
	r15d
)

const (
	rax reg = sizeQuad + iota
	rcx
	rdx
	rbx
	rsp
	rbp
	rsi
	rdi
	r8
	r9
	r10
	r11
	r12
	r13
	r14
	r15
)

const (
	sizeByte   = 0x00
	sizeWord   = 0x10
	sizeDouble = 0x20
	sizeQuad   = 0x30
)

// A segment is a segment register by its number.
type segment uint8

const (
	es segment = 0
	ss segment = 2
	ds segment = 3
)

// A control is a control register by its number.
type control uint8

const (
	cr0 control = 0
	cr3 control = 3
	cr4 control = 4
)

// An imm is a number in the code.
type imm int64

// A mem is a place in memory.
type mem struct {
	base  reg  // the register that holds an address
	bare  bool // there is no base: at is the address
	at    int64
	bits  int  // the size of what is there; 0 follows the other operand
	extra bool // in the segment es
}

func (reg) isOperand() {}
func (imm) isOperand() {}
func (mem) isOperand() {}

func (r reg) size() int    { return 8 << (r >> 4) }
func (r reg) number() byte { return byte(r & 0xf) }

// based is the place that a register points at, plus an offset.
func based(base reg, at int64) mem { return mem{base: base, at: at} }

// absolute is the place at an address.
func absolute[T ~int | ~int64](at T) mem { return mem{bare: true, at: int64(at)} }

// inExtra is the place that a register points at within the segment es.
func inExtra(base reg) mem { return mem{base: base, extra: true} }

// byteAt, doubleAt and quadAt say how large the thing is, where nothing else does.
func byteAt(m mem) mem   { m.bits = 8; return m }
func doubleAt(m mem) mem { m.bits = 32; return m }
func quadAt(m mem) mem   { m.bits = 64; return m }

// sizeOf is the size of the operands of one instruction: a register's, or else
// what was said of the memory.
func sizeOf(operands ...operand) int {
	for _, o := range operands {
		switch o := o.(type) {
		case reg:
			return o.size()
		case mem:
			if o.bits != 0 {
				return o.bits
			}
		}
	}
	return 0
}
