package zones

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed names.txt
var names string // one a line, sorted; not all names, but what people mean

const mostNear = 3

// Near returns up to three names of zones that are like a name: with its letters in another case,
// with it as the city, or with up to two letters changed.
func Near(name string) []string {
	asked := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), " ", "_"))
	if len(asked) < 3 || len(asked) > 40 {
		return nil
	}
	var best []string
	distance := 3
	for known := range strings.Lines(names) {
		known = strings.TrimSpace(known)
		lower := strings.ToLower(known)
		city := lower[strings.LastIndex(lower, "/")+1:]
		d := min(changes(asked, lower), changes(asked, city))
		switch {
		case d > distance || d > len(asked)/3:
		case d < distance:
			distance, best = d, []string{known}
		case !slices.Contains(best, known) && len(best) < mostNear:
			best = append(best, known)
		}
	}
	return best
}

// changes counts the letters that have to be put in, left out or replaced to turn a into b.
func changes(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := corner
			if a[i] != b[j] {
				replaced++
			}
			corner = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
