package guest

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func example() Block {
	return Block{Flags: flagRandom, FillPages: 4096, WorkingPages: 256,
		Batch: 64, Period: 1000, Heartbeat: 1000}
}

// TestTheProgramIsWhatAnotherAssemblerMakesOfIt compares with a listing that GNU
// as 2.40 made of the same program.
func TestTheProgramIsWhatAnotherAssemblerMakesOfIt(t *testing.T) {
	golden, err := os.ReadFile("testdata/program.hex")
	if err != nil {
		t.Fatal(err)
	}
	program, err := Program(example())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(golden), "\n"), lines(program)); diff != "" {
		t.Errorf("the program (-want +got):\n%s", diff)
	}
}

// lines are 16 bytes each, as in the golden file.
func lines(code []byte) []string {
	var out []string
	for len(code) > 0 {
		n := min(16, len(code))
		out = append(out, hex.EncodeToString(code[:n]))
		code = code[n:]
	}
	return append(out, "")
}

func TestTheFirmwareContainsTheProgramAndBeginsAtTheResetVector(t *testing.T) {
	program, err := Program(example())
	if err != nil {
		t.Fatal(err)
	}
	rom, err := firmware(example())
	if err != nil {
		t.Fatal(err)
	}
	if len(rom) != romSize || !bytes.HasPrefix(rom, program) {
		t.Errorf("the ROM has %d bytes, or does not begin with the program", len(rom))
	}
	if want := []byte{0xeb, 0x8e}; !bytes.Equal(rom[0xfff0:0xfff2], want) { // 0xff80
		t.Errorf("the reset vector holds % x; want % x", rom[0xfff0:0xfff2], want)
	}
	want := "fafcb800f08ed831c08ec0bf007c31f6b9800166f3a5ea027c0000"
	if got := hex.EncodeToString(rom[0xff80 : 0xff80+len(want)/2]); got != want {
		t.Errorf("the stub is %s; want %s", got, want)
	}
}

func TestTheProgramFitsAndLeavesTheStatePageAlone(t *testing.T) {
	program, err := Program(Block{Flags: flagStubborn, FillPages: 1, WorkingPages: 1})
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case len(program) != sectors*sectorSize:
		t.Errorf("%d bytes; want whole sectors", len(program))
	case Origin+len(program) > statePage:
		t.Errorf("the program ends at %#x, behind the state page", Origin+len(program))
	case program[510] != 0x55 || program[511] != 0xaa:
		t.Errorf("the boot sector is not signed: % x", program[510:512])
	}
}
