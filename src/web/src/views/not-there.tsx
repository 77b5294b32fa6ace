import { Empty } from "../parts/states";

export function NotThere() {
  return (
    <Empty title="Page not found">
      <p>
        <a href="/">Open fleet</a>
      </p>
    </Empty>
  );
}
