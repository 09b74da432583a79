import * as React from 'react';

import { useDesk } from '../desk';
import { allowElsewhere, mayAskToAllow } from '../elsewhere';
import { Action } from './Action';

/** Offers to be told when one looks at something else; gone once the browser knows what to do. */
export function Elsewhere(): React.JSX.Element | null {
  const { words } = useDesk();
  const [mayAsk, setMayAsk] = React.useState(mayAskToAllow);
  if (!mayAsk) {
    return null;
  }
  const allow = (): void => void allowElsewhere().then(() => setMayAsk(mayAskToAllow()));
  return (
    <p className="gpb-Elsewhere">
      <span>{words.elsewhere}</span>
      <Action label={words.allow} onClick={allow} />
    </p>
  );
}
