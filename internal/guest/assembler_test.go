package guest

import (
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestEachInstruction compares each form that an instruction has here with what
// GNU as 2.40 makes of it.
func TestEachInstruction(t *testing.T) {
	rows := []struct {
		name string
		long bool
		emit func(*assembler)
		want string
	}{
		{"mov of a small number into 64 bits", true,
			func(a *assembler) { a.mov(rbp, imm(-1)) }, "48c7c5ffffffff"},
		{"mov of a large number into 64 bits", true,
			func(a *assembler) { a.mov(r9, imm(1<<40)) }, "49b90000000000010000"},
		{"mov of a byte", true, func(a *assembler) { a.mov(al, imm(0xff)) }, "b0ff"},
		{"mov to a high register with a large offset", true,
			func(a *assembler) { a.mov(based(r10, 0x400), r12) }, "4d89a200040000"},
		{"a base of rbp has an offset", true,
			func(a *assembler) { a.mov(eax, based(rbp, 0)) }, "8b4500"},
		{"a base of r13 has an offset", true,
			func(a *assembler) { a.mov(eax, based(r13, 0)) }, "418b4500"},
		{"a base of r12 has a second byte", true,
			func(a *assembler) { a.mov(eax, based(r12, 0)) }, "418b0424"},
		{"a base of rsp and a negative offset", true,
			func(a *assembler) { a.inc(quadAt(based(rsp, -8))) }, "48ff4424f8"},
		{"an address without a base", true,
			func(a *assembler) { a.mov(absolute(0x9000), r15) }, "4c893c2500900000"},
		{"a double word into memory", true,
			func(a *assembler) { a.mov(doubleAt(based(rdi, 4)), imm(1)) }, "c7470401000000"},
		{"or of a byte into al", false, func(a *assembler) { a.or(al, imm(2)) }, "0c02"},
		{"or of a byte into ah", false, func(a *assembler) { a.or(ah, imm(1)) }, "80cc01"},
		{"add of a byte to a word", false, func(a *assembler) { a.add(di, imm(8)) }, "83c708"},
		{"add of a large number to eax, in 16-bit code", false,
			func(a *assembler) { a.add(eax, imm(0x1000)) }, "660500100000"},
		{"cmp of a large number with a word", false,
			func(a *assembler) { a.cmp(di, imm(0x1020)) }, "81ff2010"},
		{"cmp of memory with a register", true,
			func(a *assembler) { a.cmp(based(rdi, 8), rdi) }, "48397f08"},
		{"sub from memory into a register", true,
			func(a *assembler) { a.sub(rcx, based(rsi, 0)) }, "482b0e"},
		{"a store into the extra segment", false,
			func(a *assembler) { a.mov(inExtra(di), eax) }, "26668905"},
		{"test of a byte in memory", true,
			func(a *assembler) { a.test(byteAt(absolute(0x7c08)), imm(2)) }, "f60425087c000002"},
		{"test of ah", true, func(a *assembler) { a.test(ah, imm(1)) }, "f6c401"},
		{"test of a register with itself", true, func(a *assembler) { a.test(r13, r13) }, "4d85ed"},
		{"imul", true, func(a *assembler) { a.imul(rax, r8) }, "490fafc0"},
		{"shr", true, func(a *assembler) { a.shr(eax, 12) }, "c1e80c"},
		{"push of a high register", true, func(a *assembler) { a.push(r9) }, "4151"},
		{"pop of a low register", true, func(a *assembler) { a.pop(rdx) }, "5a"},
		{"push of a small number", true, func(a *assembler) { a.pushImm(0x23) }, "6a23"},
		{"push of a large number", true, func(a *assembler) { a.pushImm(0x7c00) }, "68007c0000"},
		{"in of a word", true, func(a *assembler) { a.inPort(ax) }, "66ed"},
		{"out of a double word", true, func(a *assembler) { a.outPort(eax) }, "ef"},
		{"mov of a segment register", false, func(a *assembler) { a.movSeg(ds, ax) }, "8ed8"},
		{"mov to a control register", false,
			func(a *assembler) { a.toControl(cr3, eax) }, "0f22d8"},
		{"an absolute address in 16-bit code", false,
			func(a *assembler) { a.lgdt(absolute(0x7dab)) }, "0f0116ab7d"},
		{"a short jump to itself", true,
			func(a *assembler) { a.label("x"); a.jmp("x") }, "ebfe"},
		{"a call is never short", true,
			func(a *assembler) { a.label("x"); a.call("x") }, "e8fbffffff"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			code, err := assemble(Origin, func(a *assembler) { a.long = r.long; r.emit(a) })
			if got := hex.EncodeToString(code); err != nil || got != r.want {
				t.Errorf("%s, %v; want %s", got, err, r.want)
			}
		})
	}
}

func TestWhatCannotBeAssembledIsAnError(t *testing.T) {
	rows := []struct {
		name, says string
		emit       func(*assembler)
	}{
		{"a label that is nowhere", `"x" is used and not placed`,
			func(a *assembler) { a.jmp("x") }},
		{"a label in two places", `"x" is placed twice`,
			func(a *assembler) { a.label("x"); a.hlt(); a.label("x") }},
		{"a loop over too much", "too far",
			func(a *assembler) { a.label("x"); a.pad(200); a.loop("x") }},
		{"a loop over too much ahead", "too far",
			func(a *assembler) { a.loop("x"); a.pad(200); a.label("x") }},
		{"more code than fits", "does not fit",
			func(a *assembler) { a.pad(20); a.pad(10) }},
		{"a number too large for its operand", "operand of 8 bits",
			func(a *assembler) { a.mov(al, imm(256)) }},
		{"a 64-bit number into memory", "operand of 64 bits",
			func(a *assembler) { a.mov(quadAt(based(rdi, 0)), imm(1<<40)) }},
		{"two operands in memory", "two operands",
			func(a *assembler) { a.mov(based(rdi, 0), based(rsi, 0)) }},
		{"a 64-bit register in 16-bit code", "16-bit code",
			func(a *assembler) { a.long = false; a.mov(rax, rbx) }},
		{"a 32-bit base", "no use for",
			func(a *assembler) { a.mov(eax, based(edi, 0)) }},
		{"a number as the only operand", "takes a register or memory",
			func(a *assembler) { a.inc(imm(1)) }},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			_, err := assemble(Origin, func(a *assembler) { a.long = true; r.emit(a) })
			if err == nil || !strings.Contains(err.Error(), r.says) {
				t.Errorf("the error is %v; want %q in it", err, r.says)
			}
		})
	}
}

// TestJumpsReachTheirLabels assembles jumps over drawn distances and follows
// them: each lands on its label, and is short exactly when that is enough.
func TestJumpsReachTheirLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ahead := rapid.IntRange(0, 300).Draw(t, "ahead")
		back := rapid.IntRange(0, 300).Draw(t, "back")
		code, err := assemble(Origin, func(a *assembler) {
			a.long = true
			a.label("begin")
			a.pad(back)
			a.jmp("begin")
			a.label("middle")
			a.jmp("end")
			a.pad(int(a.addr("middle")) - Origin + 5 + ahead)
			a.label("end")
		})
		if err != nil {
			t.Fatal(err)
		}
		if to, _ := follow(code, back); to != 0 {
			t.Errorf("the jump back lands at %d; want 0", to)
		}
		_, middle := follow(code, back)
		if to, _ := follow(code, middle); to != len(code) {
			t.Errorf("the jump ahead lands at %d; want %d", to, len(code))
		}
		if short := code[back] == 0xeb; short != (back+2 <= 128) {
			t.Errorf("a jump over %d bytes is short: %v", back, short)
		}
	})
}

func TestAJumpBackIsShortUpTo128Bytes(t *testing.T) {
	for over, want := range map[int]byte{125: 0xeb, 126: 0xeb, 127: 0xe9, 128: 0xe9} {
		code, err := assemble(Origin, func(a *assembler) {
			a.long = true
			a.label("begin")
			a.pad(over)
			a.jmp("begin")
		})
		if err != nil || code[over] != want {
			t.Errorf("a jump over %d bytes is %#x, %v; want %#x", over, code[over], err, want)
		}
	}
}

// follow returns where the jump at an offset lands, and where it ends.
func follow(code []byte, at int) (to, end int) {
	if code[at] == 0xeb {
		return at + 2 + int(int8(code[at+1])), at + 2
	}
	distance := int32(uint32(code[at+1]) | uint32(code[at+2])<<8 |
		uint32(code[at+3])<<16 | uint32(code[at+4])<<24)
	return at + 5 + int(distance), at + 5
}
