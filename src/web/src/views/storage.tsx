import { Loading } from "../parts/states";

export function Storage() {
  return <Loading />;
}
