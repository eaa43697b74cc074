package vet

import (
	"bytes"
	"go/token"
	"strings"
)

type line struct {
	file string
	n    int
}

// readComments finds the lines about which a comment says that they are as they should be, and
// reports comments that do not say why.
func (c *checker) readComments() error {
	c.silent = map[line]bool{}
	for _, f := range c.Files {
		var source []byte
		for _, group := range f.Comments {
			for _, comment := range group.List {
				reason, ok := strings.CutPrefix(comment.Text, "//drover:ok")
				why := strings.TrimSpace(reason)
				if !ok || why != "" && why == reason {
					continue // such as //drover:okay
				}
				if why == "" {
					c.Reportf(comment.Pos(), "say why it is as it should be: //drover:ok reason")
					continue
				}
				p := c.Fset.PositionFor(comment.Pos(), false)
				if source == nil {
					var err error
					if source, err = c.ReadFile(p.Filename); err != nil {
						return err
					}
				}
				begin := bytes.LastIndexByte(source[:p.Offset], '\n') + 1
				if len(bytes.TrimSpace(source[begin:p.Offset])) == 0 {
					p.Line++ // it stands above what it means
				}
				c.silent[line{p.Filename, p.Line}] = true
			}
		}
	}
	return nil
}

func (c *checker) isSilent(pos token.Pos) bool {
	p := c.Fset.PositionFor(pos, false)
	return c.silent[line{p.Filename, p.Line}]
}
