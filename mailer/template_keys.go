package mailer

import (
	"reflect"
	"text/template/parse"
)

// collectKeys adds the keys of .Data that a parsed template speaks of.
func collectKeys(found map[string]bool, tree *parse.Tree) {
	if tree != nil && tree.Root != nil {
		collectNode(found, tree.Root)
	}
}

func collectNode(found map[string]bool, node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		collectList(found, n)
	case *parse.ActionNode:
		collectPipe(found, n.Pipe)
	case *parse.TemplateNode:
		collectPipe(found, n.Pipe)
	case *parse.IfNode:
		collectBranch(found, &n.BranchNode)
	case *parse.RangeNode:
		collectBranch(found, &n.BranchNode)
	case *parse.WithNode:
		collectBranch(found, &n.BranchNode)
	case *parse.PipeNode:
		collectPipe(found, n)
	case *parse.ChainNode:
		collectNode(found, n.Node)
	case *parse.FieldNode:
		collectPath(found, n.Ident)
	case *parse.VariableNode:
		collectPath(found, n.Ident[1:])
	}
}

func collectBranch(found map[string]bool, branch *parse.BranchNode) {
	collectPipe(found, branch.Pipe)
	collectList(found, branch.List)
	collectList(found, branch.ElseList)
}

func collectList(found map[string]bool, list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		collectNode(found, node)
	}
}

func collectPipe(found map[string]bool, pipe *parse.PipeNode) {
	if pipe == nil {
		return
	}
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			collectNode(found, argument)
		}
	}
}

// collectPath looks at one .A.B.C. Data.key needs the key; so does a name that
// is none of the fields, for it may stand inside {{with .Data}}. A misspelt
// field counts as a key too, and is caught when the template is tried out.
func collectPath(found map[string]bool, path []string) {
	if len(path) == 0 {
		return
	}
	if path[0] == "Data" {
		if len(path) > 1 {
			found[path[1]] = true
		}
		return
	}
	if _, ok := reflect.TypeFor[templateFields]().FieldByName(path[0]); !ok {
		found[path[0]] = true
	}
}
