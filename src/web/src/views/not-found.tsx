import { Empty } from "../parts/states";

export function NotFound() {
  return (
    <Empty title="Page not found">
      <p>
        <a href="/">Open fleet</a>
      </p>
    </Empty>
  );
}
