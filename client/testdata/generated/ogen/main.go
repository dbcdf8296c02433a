// Command ogen sends twice with a client of ogen, and prints why the second was refused.
package main

import (
	"context"
	"fmt"
	"os"

	"acme.example/generated/api"
)

type keys struct{}

func (keys) ApiKey(context.Context, api.OperationName) (api.ApiKey, error) {
	return api.ApiKey{Token: os.Getenv("GATE_KEY")}, nil
}

func (keys) AdminKey(context.Context, api.OperationName) (api.AdminKey, error) {
	return api.AdminKey{}, nil
}

func main() {
	gate, err := api.NewClient(os.Getenv("GATE_URL"), keys{})
	if err != nil {
		panic(err)
	}
	for range 2 {
		answer, err := gate.SendCode(context.Background(), &api.SendRequest{Email: os.Args[1]}, api.SendCodeParams{})
		if err != nil {
			panic(err)
		}
		switch answer := answer.(type) {
		case *api.SentHeaders:
			fmt.Println("sent", answer.Response.WaitMs)
		case *api.DeniedHeaders:
			fmt.Println("refused", answer.Response.Rule.Value, answer.Response.Limit.Value)
		default:
			fmt.Printf("%T\n", answer)
		}
	}
}
