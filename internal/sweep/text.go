package sweep

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
)

// Table writes verdicts for people: what was measured, and a sentence about each measure.
func Table(ours, theirs string, list []ComparisonResult) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "measure\t%s\t%s\tworlds with less\tmore\talike\tp\n", ours, theirs)
	for i := range list {
		v := &list[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Name, v.Kind.write(v.Ours),
			v.Kind.write(v.Theirs), grouped(v.Less), grouped(v.More), grouped(v.Alike), chance(v.P))
	}
	t.Flush() // to memory, which does not fail
	b.WriteString("\n")
	for i := range list {
		b.WriteString(list[i].String() + "\n")
	}
	return b.String()
}

// String says the verdict in a sentence.
func (v *ComparisonResult) String() string {
	return v.Name + ": " + v.Outcome.String() + v.because() + v.worlds()
}

// because says by how much.
func (v *ComparisonResult) because() string {
	in := v.Effect
	switch {
	case v.Outcome == Better || v.Outcome == Worse:
		if !v.Ratio {
			return fmt.Sprintf(": %s (95 %%: %s)", v.apart(in.Value), v.span(in))
		}
		return ": " + v.ratio(in)
	case v.Outcome == Same:
		return ""
	case v.Worlds < fewest:
		return ": too few worlds"
	case v.P <= Level && v.Contrary:
		return fmt.Sprintf(": %s in most worlds, and the opposite on average",
			v.word(v.Less < v.More))
	case math.IsInf(v.Typical.Low, 0) || math.IsInf(v.Typical.High, 0):
		return ": the worlds are too different"
	}
	if in.High < v.none() || in.Low > v.none() {
		return fmt.Sprintf(": %s%s, but that may be chance", v.apart(in.Value), v.where())
	}
	low, high := v.apart(v.Typical.Low), v.apart(v.Typical.High)
	return fmt.Sprintf(": between %s and %s (95 %%)", low, high)
}

// ratio writes a median ratio that is all on one side of 1, as "12 % shorter (95 %: 8 to 15 %)".
func (v *ComparisonResult) ratio(in Interval) string {
	near, far := in.High, in.Low
	if in.Value > 1 {
		near, far = in.Low, in.High
	}
	switch {
	case math.IsInf(in.Value, 1):
		return v.word(true) + " without bound"
	case in.Value >= 2:
		return fmt.Sprintf("%s times as %s (95 %%: %s to %s)", short(in.Value), v.much(),
			short(near), short(far))
	}
	return fmt.Sprintf("%s (95 %%: %s to %s %%)", v.apart(in.Value), percent(near), percent(far))
}

// span writes an interval of differences that is all on one side of 0.
func (v *ComparisonResult) span(in Interval) string {
	low, high := math.Abs(in.Low), math.Abs(in.High)
	return v.Kind.write(min(low, high)) + " to " + v.Kind.write(max(low, high))
}

// apart writes an effect as "12 % shorter" or "0.2 fewer a world".
func (v *ComparisonResult) apart(effect float64) string {
	if v.Ratio {
		return percent(effect) + " % " + v.word(effect > 1)
	}
	return v.Kind.write(math.Abs(effect)) + " " + v.word(effect > 0) + " a world"
}

// word says in which direction something differs.
func (v *ComparisonResult) word(more bool) string {
	switch {
	case more && v.Kind == Seconds:
		return "longer"
	case more:
		return "more"
	case v.Kind == Seconds:
		return "shorter"
	case v.Kind == Count:
		return "fewer"
	}
	return "less"
}

func (v *ComparisonResult) much() string {
	if v.Kind == Seconds {
		return "long"
	}
	return "much"
}

// worlds says how many worlds were looked at.
func (v *ComparisonResult) worlds() string {
	all := grouped(v.Worlds) + strings.TrimPrefix(humanize.Count(v.Worlds, "world"),
		fmt.Sprint(v.Worlds))
	switch decided := v.Outcome == Better || v.Outcome == Worse; {
	case v.Alike == 0 || v.Alike == v.Worlds:
		return ", " + all
	case decided && v.Ratio:
		return v.where() + ", " + grouped(v.Less+v.More) + " of " + all
	}
	return ", " + all + ", " + grouped(v.Alike) + " of them alike"
}

// where says that an effect is that of some worlds only.
func (v *ComparisonResult) where() string {
	if !v.Ratio || v.Alike == 0 {
		return ""
	}
	return " where they differ"
}

// write writes a number of a kind with its unit.
func (k Kind) write(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "never"
	case math.IsNaN(x):
		return "-"
	case k == Seconds && math.Abs(x) < 1:
		return short(1000*x) + "ms"
	case k == Seconds:
		return humanize.Span(x)
	case k == Bytes:
		return hypervisor.Bytes(x).String()
	}
	return short(x)
}

// percent writes how far a ratio is from 1.
func percent(ratio float64) string { return short(100 * math.Abs(ratio-1)) }

// short writes a number with two digits that count, or all before the point.
func short(x float64) string {
	switch size := math.Abs(x); {
	case math.IsInf(x, 0):
		return "any"
	case x == math.Trunc(x) || size >= 9.95:
		return fmt.Sprintf("%.0f", x)
	case size >= 0.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2g", x)
}

// chance writes a chance.
func chance(p float64) string {
	if p < 0.0001 {
		return "<0.0001"
	}
	return fmt.Sprintf("%.2g", p)
}

// grouped writes a number with its thousands apart.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
