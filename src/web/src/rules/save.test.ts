import { expect, it } from "vitest";
import { textNameOf } from "./save";

it("names the text of a rule after the rule", () => {
  expect(textNameOf("NetworkReceivedEth0")).toBe("network-received-eth0");
  expect(textNameOf("HighCPU load")).toBe("high-cpu-load");
  expect(textNameOf("負荷")).toBe("rule");
});
