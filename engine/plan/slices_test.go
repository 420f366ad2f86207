package plan

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func repeat(calls int32, rows int) []int32 {
	out := make([]int32, rows)
	for i := range out {
		out[i] = calls
	}
	return out
}

func TestSliceCount(t *testing.T) {
	for name, tc := range map[string]struct {
		calls       []int32
		parallelism int32
		want        int32
	}{
		"a few calls are one pod's work":           {repeat(1, 4), 4, 1},
		"no call at all is one slice":              {repeat(0, 4), 4, 1},
		"500 calls are worth four pods":            {repeat(5, 100), 4, 4},
		"as many pods as are allowed":              {repeat(5, 1000), 8, 8},
		"no slice is longer than a pod should run": {repeat(100, 1000), 4, 50},
		"no more slices than rows":                 {repeat(500, 2), 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SliceCount(tc.calls, tc.parallelism); got != tc.want {
				t.Errorf("SliceCount = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestSlices(t *testing.T) {
	for name, tc := range map[string]struct {
		calls []int32
		n     int32
		want  []Slice
	}{
		"one slice holds all":      {[]int32{5, 5, 5}, 1, []Slice{{0, 3}}},
		"equal rows, equal slices": {repeat(5, 6), 3, []Slice{{0, 2}, {2, 4}, {4, 6}}},
		"a heavy row stands alone": {[]int32{100, 1, 1, 1}, 2, []Slice{{0, 1}, {1, 4}}},
		"a slice for each row":     {[]int32{9, 0, 0}, 3, []Slice{{0, 1}, {1, 2}, {2, 3}}},
		"heavy rows at the end":    {[]int32{0, 0, 9}, 3, []Slice{{0, 1}, {1, 2}, {2, 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Slices(tc.calls, tc.n)); diff != "" {
				t.Errorf("slices (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSlicesHoldEveryRowOnceAndNoneIsEmpty(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		calls := make([]int32, 1+r.IntN(60))
		for i := range calls {
			calls[i] = r.Int32N(200)
		}
		n := 1 + r.Int32N(int32(len(calls)))
		next := 0
		for i, s := range Slices(calls, n) {
			if s.From != next || s.To <= s.From {
				t.Fatalf("%v in %d slices: slice %d is [%d, %d), want it to begin at %d with a row", calls, n, i, s.From, s.To, next)
			}
			next = s.To
		}
		if next != len(calls) {
			t.Fatalf("%v in %d slices: the last ends at %d", calls, n, next)
		}
	}
}
