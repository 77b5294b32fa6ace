import { Empty } from "../parts/states";

export function NotThere() {
  return (
    <Empty title="There is no such page">
      <p>
        <a href="/">To the fleet</a>
      </p>
    </Empty>
  );
}
