package web

import (
	"bytes"
	"cmp"
	"html/template"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// asHTML renders CommonMark with tables. HTML in a text is shown as it is written.
var asHTML = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewEmphasisParser(), 500),
		),
		parser.WithASTTransformers(util.Prioritized(onThisPage{}, 100)),
	)),
	goldmark.WithExtensions(extension.Table),
)

func markdown(from string) (template.HTML, error) {
	var b bytes.Buffer
	err := asHTML.Convert([]byte(from), &b)
	return template.HTML(b.String()), err
}

// onThisPage makes headings subordinate to those of the page, and turns links of a page of docs into links that
// lead from any server.
type onThisPage struct{}

const repository = "https://github.com/mailgate/mailgate/blob/main/"

// Transform implements parser.ASTTransformer.
func (onThisPage) Transform(page *ast.Document, _ text.Reader, _ parser.Context) {
	_ = ast.Walk(page, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			if entering {
				n.Level += 2
			}
		case *ast.Link:
			n.Destination = []byte(destination(string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
}

func destination(link string) string {
	file, anchor, _ := strings.Cut(link, "#")
	name, isPage := strings.CutSuffix(file, ".md")
	switch {
	case link == "../openapi.yaml":
		return "/openapi.yaml"
	case file == "problems.md":
		return "#" + cmp.Or(anchor, "problems")
	case isPage && slices.Contains(guides, name):
		return "#" + name
	case strings.HasPrefix(link, "../"):
		return repository + link[len("../"):]
	case isPage && !strings.Contains(name, "/"):
		return repository + "docs/" + link
	}
	return link
}
